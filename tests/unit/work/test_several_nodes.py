"""Jobs over several nodes: two objects that name each other."""

from typing import Any

import pytest

from ebbtide.work.jobs import job_over_nodes
from tests.manifests import assert_valid
from tests.unit.work.clusters import DEV, container_of, problems_of

_FIELDS: Any = {"name": "train", "image": "busybox", "pool": "t4-spot", "gpus": 4, "namespace": "lab"}


def _problems(nodes: int = 2, **fields: Any) -> tuple[str, ...]:
    return problems_of(lambda: job_over_nodes(DEV, nodes, **_FIELDS | fields))


def test_all_pods_run_at_once_and_are_given_up_together() -> None:
    """Retries are those of each index, and one index without any left fails the Job."""
    made, service = job_over_nodes(DEV, 3, **_FIELDS, retries=5, fail_on=[42])
    for manifest in (made, service):
        assert_valid(manifest, "1.34")
        assert_valid(manifest, "1.37")
    spec = made["spec"]
    assert {key: spec[key] for key in spec if key not in ("template", "podFailurePolicy")} == {
        "completionMode": "Indexed",
        "completions": 3,
        "parallelism": 3,
        "backoffLimitPerIndex": 5,
        "maxFailedIndexes": 0,
        "podReplacementPolicy": "Failed",
        "ttlSecondsAfterFinished": 24 * 3600,
    }
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["FailJob", "Ignore"]


def test_the_pods_find_each_other() -> None:
    """MASTER_ADDR is the host name that the Job controller gives index 0, below the Service of the subdomain;
    the Service selects the Job's pods, and its records do not wait until a pod is ready."""
    made, service = job_over_nodes(DEV, 3, **_FIELDS)
    assert made["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"] == "train"
    assert service["metadata"]["namespace"] == made["metadata"]["namespace"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": made["metadata"]["name"]}
    variables = {item["name"]: item["value"] for item in container_of(made)["env"] if "value" in item}
    shared = {"MASTER_ADDR": "train-0.train", "MASTER_PORT": "29500", "NNODES": "3"}
    assert variables == {
        **shared,
        "WORLD_SIZE": "3",
        **{f"PET_{name}": value for name, value in shared.items()},
        "PET_NPROC_PER_NODE": "4",
    }
    assert service["spec"]["ports"] == [{"name": "master", "port": 29500}]


def test_every_pod_knows_its_rank() -> None:
    """From its index; variables of the user come after, and may refer to it."""
    made, _ = job_over_nodes(DEV, 2, **_FIELDS, env={"LOG": "rank-$(RANK)"})
    variables = container_of(made)["env"]
    path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    assert variables[:3] == [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name in ("RANK", "NODE_RANK", "PET_NODE_RANK")
    ]
    assert variables[-1] == {"name": "LOG", "value": "rank-$(RANK)"}


def test_without_gpus_torchrun_keeps_its_own_count() -> None:
    """One process a pod, unless the command says otherwise."""
    made, _ = job_over_nodes(DEV, 2, **_FIELDS | {"pool": "cpu-spot", "gpus": 0})
    assert "PET_NPROC_PER_NODE" not in {item["name"] for item in container_of(made)["env"]}


def test_in_a_queue_it_is_one_workload() -> None:
    """Kueue counts the Job's parallelism and starts the Job; the Service follows into its namespace."""
    made, service = job_over_nodes(
        DEV, 4, name="train", image="busybox", queue="a100", gpus=1, cpu="4", memory="16Gi"
    )
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "big"}
    assert made["spec"]["suspend"] is True
    assert made["spec"]["parallelism"] == 4
    assert service["metadata"] == {"name": "train", "namespace": "vision"}


@pytest.mark.parametrize(
    ("nodes", "fields", "message"),
    [
        (1, {}, "nodes is 1; write 2 or more, or create an ordinary Job."),
        (5, {}, "nodes is 5, and pool t4-spot has capacity for 4 such pods: the pods would wait"),
        (
            2,
            {"name": "1train"},
            "name is '1train'; over several nodes, it is also the name of a Service, and must begin",
        ),
        (2, {"name": "a" * 62}, "write at most 61 lower-case letters"),
        (2, {"env": {"MASTER_ADDR": "x"}}, "env has MASTER_ADDR, which a Job over several nodes sets"),
        (2, {"env": {"PET_NODE_RANK": "1"}}, "env has PET_NODE_RANK, which a Job over several nodes sets"),
        (2, {"secret_env": {"RANK": "a/b"}}, "secret_env has RANK, which a Job over several nodes sets"),
    ],
)
def test_invalid_arguments(nodes: int, fields: dict[str, Any], message: str) -> None:
    """One error, that names what to change."""
    (problem,) = _problems(nodes, **fields)
    assert message in problem


def test_everything_wrong_is_said_at_once() -> None:
    """The variables, the name and the number of pods in one error."""
    assert len(_problems(9, name="1train", env={"RANK": "0", "HF_TOKEN": "hf_0123456789abcdef"})) == 4
