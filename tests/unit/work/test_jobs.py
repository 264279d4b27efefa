from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from ebbtide.placement import Profile
from ebbtide.work.errors import WorkloadError
from ebbtide.work.jobs import job
from ebbtide.work.sweeps import sweep
from tests.declarations import GKE, Declaration, changed, declarations
from tests.manifests import assert_valid
from tests.unit.work.clusters import DEV, DEV_AKS, derived, pod_of, problems_of, ways
from tests.unit.work.steps import led, tolerated

_FULL: dict[str, Any] = {
    "name": "train",
    "image": "acme.example/train:1",
    "command": ["python", "train.py"],
    "args": ["--fast"],
    "pool": "t4-spot",
    "namespace": "lab",
    "gpus": 4,
    "cpu": "4",
    "memory": "40Gi",
    "retries": 5,
    "fail_on": [42, 3, 42],
    "ttl": "7d",
    "max_run": timedelta(hours=6),
    "env": {"SEED": "1"},
    "service_account": "vision",
    "volume": "shared",
    "mount_path": "/work",
}


def _problems(profile: Profile = DEV, **fields: Any) -> tuple[str, ...]:
    return problems_of(lambda: _job(profile, **fields))


def _job(profile: Profile = DEV, **fields: Any) -> dict[str, Any]:
    given: Any = {"name": "train", "image": "busybox"} | fields
    return job(profile, **given)


def _assert_all_valid(profile: Profile) -> int:
    made = 0
    for pool in profile.pools:
        for fields in ways(profile, pool):
            if pool.cpu_m < 1250 or pool.memory_mib < 1024:
                continue  # too small a machine for the sample, as a system pool's may be
            extra: dict[str, Any] = {**fields, "volume": "shared", "fail_on": [42], "max_run": "1h"}
            grid = {"lr": [0.1, 0.01], "opt": ["adam", "sgd"]}
            for manifest in (
                job(profile, **fields),
                job(profile, **extra),
                sweep(profile, grid, max_failed=1, **extra),
            ):
                for version in ("1.34", "1.37"):
                    assert_valid(manifest, version)
                made += 1
                if "pool" in fields:
                    pod = pod_of(manifest)
                    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                    assert tolerated(pool, pod)
                    assert led(pool, terms["nodeSelectorTerms"])
    return made


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(declarations())
def test_every_pool_of_any_declaration_gets_valid_jobs(declaration: Declaration) -> None:
    """Any declaration on either cloud, and pods on a pool take its nodes."""
    assert _assert_all_valid(derived(declaration)) > 0


def test_a_job_on_a_pool() -> None:
    """Every field is where Kubernetes expects it."""
    manifest = job(DEV, **_FULL)
    assert_valid(manifest, "1.35")
    assert manifest["metadata"] == {"name": "train", "namespace": "lab"}
    spec = manifest["spec"]
    assert {key: spec[key] for key in spec if key not in ("template", "podFailurePolicy")} == {
        "backoffLimit": 5,
        "podReplacementPolicy": "Failed",
        "ttlSecondsAfterFinished": 7 * 24 * 3600,
    }
    assert spec["podFailurePolicy"]["rules"] == [
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "work", "operator": "In", "values": [3, 42]},
        },
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    pod = pod_of(manifest)
    assert (pod["restartPolicy"], pod["activeDeadlineSeconds"], pod["serviceAccountName"]) == (
        "Never",
        6 * 3600,
        "vision",
    )
    assert pod["containers"] == [
        {
            "name": "work",
            "image": "acme.example/train:1",
            "command": ["python", "train.py"],
            "args": ["--fast"],
            "env": [{"name": "SEED", "value": "1"}],
            "resources": {
                "requests": {"cpu": "4", "memory": "40Gi", "nvidia.com/gpu": "4"},
                "limits": {"memory": "40Gi", "nvidia.com/gpu": "4"},
            },
            "volumeMounts": [{"name": "checkpoints", "mountPath": "/work"}],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["NET_RAW"]}},
        }
    ]
    assert pod["volumes"] == [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "shared"}}]
    assert spec["template"]["metadata"] == {"annotations": {"gke-gcsfuse/volumes": "true"}}


def test_a_token_is_mounted_for_a_named_account_alone() -> None:
    """The account's own setting decides then; a team's `worker` mounts none either."""
    assert pod_of(_job(pool="cpu-spot"))["automountServiceAccountToken"] is False
    named = _job(pool="cpu-spot", service_account="vision")
    assert "automountServiceAccountToken" not in pod_of(named)


def test_a_user_that_is_not_root_satisfies_restricted() -> None:
    """Everything that the standard asks for, and a group that volumes are writable for."""
    pod = pod_of(_job(pool="cpu-spot", run_as_user=1000))
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "fsGroup": 1000,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_job_in_a_queue() -> None:
    """A Job in a queue is suspended, names its local queue, and leaves placement to the flavor."""
    manifest = _job(queue="a100", gpus=1, cpu="2", memory="4Gi", max_run="12h")
    assert manifest["metadata"] == {
        "name": "train",
        "namespace": "vision",
        "labels": {"kueue.x-k8s.io/queue-name": "big"},
        "annotations": {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "43200"},
    }
    assert manifest["spec"]["suspend"] is True
    assert not {"tolerations", "affinity"} & set(pod_of(manifest))


def test_nodes_are_asked_for_no_longer_than_they_live() -> None:
    """A run without a limit of its own has the queued pool's; a pool that is not queued needs none."""
    queued = _job(queue="a100", gpus=1, cpu="1", memory="1Gi")
    assert queued["metadata"]["annotations"] == {
        "provreq.kueue.x-k8s.io/maxRunDurationSeconds": str(7 * 24 * 3600)
    }
    plain = _job(queue="t4", gpus=1, cpu="1", memory="1Gi", max_run="1h")
    assert "annotations" not in plain["metadata"]


def test_no_bucket_mount_on_aks() -> None:
    """There, what mounts a volume is not part of the pod."""
    manifest = _job(DEV_AKS, pool=DEV_AKS.pools[1].name, volume="shared")
    assert "metadata" not in manifest["spec"]["template"]


def test_scale_down_waits_for_a_job_that_keeps_its_node() -> None:
    """The autoscaler does not evict its pods; those of any other Job have no annotation."""
    assert _job(pool="cpu-spot", keep_node=True)["spec"]["template"]["metadata"]["annotations"] == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"
    }
    assert "metadata" not in _job(pool="cpu-spot")["spec"]["template"]


def test_the_bucket_mount_needs_room() -> None:
    """Work that leaves no capacity for it on a node would stay pending."""
    room = DEV.pool("cpu-spot").cpu_m
    fields: dict[str, Any] = {"pool": "cpu-spot", "cpu": f"{room}m"}
    _job(**fields)
    (problem,) = _problems(DEV, **fields | {"volume": "shared"})
    assert problem.endswith(f"offers pods {room - 250}m beside the bucket mount.")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Neither a pool nor a queue is named"),
        ({"pool": "t4-spot", "queue": "t4"}, "Both a pool and a queue are named"),
        ({"pool": "t4spot"}, "Cluster train-dev has no pool t4spot; did you mean t4-spot?"),
        ({"queue": "a10"}, "has no queue a10; did you mean a100?"),
        ({"queue": "vision/bog"}, "Cluster train-dev has no queue vision/bog"),
        ({"queue": "vision/big", "namespace": "speech"}, "queue is vision/big, and namespace is speech"),
        ({"queue": "t4", "gpus": 1, "cpu": "1", "memory": "1GB"}, "memory is '1GB', which is not an amount"),
        (
            {"queue": "t4", "gpus": 1, "cpu": "1", "memory": "1Gi", "max_run": "3x"},
            "max_run is '3x', which is not a duration",
        ),
        (
            {"pool": "a100-queued", "gpus": 1},
            "only for work that was admitted from a queue: name queue a100 instead",
        ),
        (
            {"pool": "t4-spot", "gpus": 5},
            "has 4 nvidia-tesla-t4. Write at most 4; `ebbtide run --nodes 2` starts two such pods",
        ),
        ({"pool": "cpu-spot", "gpus": 1}, "a node of pool cpu-spot has no accelerators."),
        ({"pool": "t4-spot", "gpus": -1}, "gpus is -1; write 0 or more."),
        ({"pool": "cpu-spot", "cpu": "8"}, "cpu is 8, and a node of pool cpu-spot (n2-standard-8) offers"),
        ({"pool": "cpu-spot", "memory": "32Gi"}, "memory is 32Gi, and a node of pool cpu-spot"),
        ({"pool": "cpu-spot", "cpu": "many"}, "cpu is 'many', which is not an amount of CPU"),
        ({"pool": "cpu-spot", "memory": "48"}, "memory is '48', which is not an amount of memory for a pod"),
        ({"pool": "cpu-spot", "max_run": "soon"}, "max_run is 'soon', which is not a duration"),
        ({"pool": "cpu-spot", "ttl": "0h"}, "ttl is '0h', which is not a duration"),
        ({"pool": "t4-spot"}, "gpus is missing, and pool t4-spot has only nodes with 4 nvidia-tesla-t4, "),
        ({"pool": "t4-spot"}, "Write gpus=1 to gpus=4 (--gpus), or gpus=0 for work"),
        (
            {"queue": "a100", "cpu": "1", "memory": "1Gi"},
            "queue a100 has only nodes with 1 nvidia-tesla-a100",
        ),
        ({"queue": "a100", "cpu": "1", "memory": "1Gi"}, "Write gpus=1 (--gpus), or gpus=0 for work"),
        ({"pool": "cpu-spot", "retries": -1}, "retries is -1; write 0 or more."),
        ({"pool": "cpu-spot", "fail_on": [0]}, "fail_on has 0; write an exit code from 1 to 255."),
        ({"pool": "cpu-spot", "fail_on": [143]}, "the exit code of a pod that SIGTERM stopped"),
        ({"pool": "cpu-spot", "name": "Train"}, "name is 'Train'; write at most 63"),
        ({"pool": "cpu-spot", "name": "a" * 64}, "write at most 63"),
        (
            {"pool": "cpu-spot", "namespace": "a.b"},
            "namespace is 'a.b', which is not a valid namespace name.",
        ),
        ({"pool": "cpu-spot", "image": " "}, "image is empty"),
        ({"pool": "cpu-spot", "command": "python x.py"}, "command is a text; write its words as a list"),
        (
            {"pool": "cpu-spot", "env": {"A=B": "1"}},
            "env has 'A=B', which is not a valid name of a variable.",
        ),
        ({"pool": "cpu-spot", "volume": "_"}, "volume is '_', which is not a valid name."),
        ({"pool": "cpu-spot", "mount_path": "here"}, "mount_path is 'here'; it is an absolute path"),
        (
            {"pool": "cpu-spot", "run_as_user": 0},
            "run_as_user is 0; write 1 to 2147483647. Omit it to run as root",
        ),
        ({"queue": "t4", "gpus": 1}, "cpu and memory are both required in a queue"),
        (
            {"queue": "t4", "gpus": 1, "cpu": "1", "memory": "1Gi", "namespace": "speech"},
            "Queue t4 is not in namespace speech; it is in: vision.",
        ),
        (
            {"queue": "a100", "gpus": 1, "cpu": "1", "memory": "1Gi", "max_run": "8d"},
            "max_run is 8d, and a node of pool a100-queued lives at most 7d",
        ),
        ({"queue": "big", "gpus": 2}, "gpus is 2, and a node of pool a100-queued has 1 nvidia-tesla-a100. "),
    ],
)
def test_invalid_arguments(fields: dict[str, Any], message: str) -> None:
    """In one sentence or two, with what to write instead."""
    problems = _problems(**fields)
    assert message in problems[0]
    assert [*problems[1:]] == (["No pool of queue big can run this."] if fields.get("gpus") == 2 else [])


def test_everything_wrong_is_said_at_once() -> None:
    """One error with a line for each."""
    problems = _problems(name="Train", pool="t4-spot", gpus=8, cpu="x", memory="1Ti", fail_on=[300])
    assert [text.partition(" ")[0] for text in problems] == ["name", "fail_on", "cpu", "gpus", "memory"]


@pytest.mark.parametrize("queue", ["a100", "big", "vision/big"])
def test_names_of_a_queue(queue: str) -> None:
    """A queue is named as declared, or by a LocalQueue, as a preview shows it."""
    made = _job(queue=queue, gpus=1, cpu="1", memory="1Gi")
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "big"}
    assert made["metadata"]["namespace"] == "vision"


def test_a_local_name_of_several_queues() -> None:
    """A name that is another queue's in another namespace is not guessed."""
    teams = [
        {"name": name, "queues": [{"queue": queue, "as": "mine"}]}
        for name, queue in (("vision", "t4"), ("speech", "a100"))
    ]
    profile = derived(changed(GKE, teams=teams))
    fields: Any = {"gpus": 1, "cpu": "1", "memory": "1Gi"}
    (problem,) = _problems(profile, **fields, queue="mine")
    assert problem == "Several queues have the name mine: write one of vision/mine, speech/mine."
    assert _job(profile, **fields, queue="mine", namespace="vision")["metadata"]["namespace"] == "vision"


def test_a_queue_in_several_namespaces() -> None:
    """The namespace must be given."""
    teams = [{"name": "vision"}, {"name": "speech"}]
    profile = derived(changed(GKE, teams=teams))
    fields: Any = {"queue": "t4", "gpus": 1, "cpu": "1", "memory": "1Gi"}
    assert _problems(profile, **fields) == ("namespace is needed: queue t4 is in speech, vision.",)
    made = _job(profile, **fields, namespace="speech")
    assert made["metadata"]["namespace"] == "speech"


def test_a_misspelt_field() -> None:
    """Is refused as any misspelt argument is."""
    with pytest.raises(TypeError, match="'gpu'"):
        job(DEV, name="train", image="busybox", pool="cpu-spot", gpu=1)  # pyright: ignore[reportCallIssue]


def test_no_gpu_on_nodes_with_gpus_is_meant_when_said() -> None:
    """With gpus=0 the pod goes there and requests none."""
    for target in ({"pool": "t4-spot"}, {"queue": "t4"}):
        fields: Any = {"cpu": "1", "memory": "1Gi", **target}
        (container,) = pod_of(_job(**fields, gpus=0))["containers"]
        assert container["resources"] == {
            "requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"memory": "1Gi"},
        }


def test_a_queue_with_cpu_nodes_needs_no_gpus() -> None:
    """A queue with CPU pools accepts work without GPUs, unless only its accelerator pools are large
    enough."""
    queues = [{"name": "mixed", "pools": ["cpu", "gpu"]}]
    pools = [
        GKE["pools"][0],
        {"name": "cpu", "machine": "n2-standard-4", "nodes": {"max": 2}},
        {
            "name": "gpu",
            "machine": "n1-standard-16",
            "accelerator": {"type": "nvidia-tesla-t4"},
            "nodes": {"max": 2},
        },
    ]
    mixed = derived(changed(GKE, pools=pools, queues=queues, teams=[{"name": "vision"}]))
    fields: Any = {"queue": "mixed", "memory": "4Gi"}
    _job(mixed, **fields, cpu="2")
    (problem,) = _problems(mixed, **fields, cpu="10")
    assert problem.startswith("gpus is missing, and queue mixed has only nodes with 1 nvidia-tesla-t4")


def test_a_required_queue_is_named_before_anything_runs() -> None:
    """In a team's namespace, a pool of its queues is not taken directly: the API server would refuse it."""
    with pytest.raises(
        WorkloadError, match="In namespace vision, work must use pool t4-spot through a queue"
    ):
        _job(pool="t4-spot", namespace="vision", gpus=1)
    assert _job(pool="t4-spot", namespace="other", gpus=1)
    assert _job(pool="cpu-spot", namespace="vision")


def test_a_restricted_namespace_needs_a_user() -> None:
    """A restricted namespace needs run_as_user, because the API server would accept the Job and refuse its
    pods."""
    team = {"name": "vision", "namespace": {"name": "vision", "podSecurity": "restricted"}}
    restricted = derived(changed(GKE, queues=[{"name": "cpu", "pools": ["cpu"]}], teams=[team]))
    fields: Any = {"queue": "cpu", "cpu": "1", "memory": "1Gi"}
    (problem,) = _problems(restricted, **fields)
    assert problem.startswith("In namespace vision, the API server refuses pods that may run as root")
    assert _job(restricted, **fields, run_as_user=1000)
