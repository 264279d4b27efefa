from dataclasses import replace
from typing import Any

import pytest
from kfp import dsl, kubernetes

from ebbtide.placement import ProfileError
from ebbtide.work.pipelines import use_pool, use_queue, use_secrets
from tests.unit.workloads.clusters import DEV, DEV_AKS, PROFILES
from tests.unit.workloads.steps import (
    KINDS,
    container_step,
    led,
    problems_of,
    settings,
    step,
    tolerated,
)

_T4 = DEV.pool("t4-spot")
_CPU = DEV.pool("cpu-spot")
_PREEMPTIBLE = PROFILES["examples/preemptible-pipelines/Pulumi.preemptible-pipelines.yaml"]


@pytest.mark.parametrize("kind", KINDS)
def test_hard_placement_of_every_kind_of_step(kind: str) -> None:
    """Steps from functions, containers and component files get tolerations and one required term."""
    task = use_pool(step(kind), _T4, gpus=4, cpu="4", memory="40G")
    (term,) = settings(task)["nodeAffinity"]
    assert "weight" not in term
    assert {item["key"] for item in term["matchExpressions"]} == {label.key for label in _T4.affinity}
    assert settings(task)["tolerations"] == [item.manifest() for item in _T4.tolerations]
    assert task.container_spec is not None
    resources = task.container_spec.resources
    assert resources is not None
    assert (resources.accelerator_type, resources.accelerator_count) == ("nvidia.com/gpu", "4")
    assert (resources.cpu_limit, resources.memory_limit) == ("4", "40G")


def test_soft_placement_prefers() -> None:
    """A soft step prefers its pool, tolerates the fallback's taints too, and is required nowhere."""
    task = use_pool(step(), DEV_AKS.pool("cpuspot"), hard=False, fallback=[DEV_AKS.pool("cpu")])
    (term,) = settings(task)["nodeAffinity"]
    assert term["weight"] == 50
    assert tolerated(DEV_AKS.pool("cpuspot"), settings(task))
    assert tolerated(DEV_AKS.pool("cpu"), settings(task))
    assert not tolerated(DEV_AKS.pool("t4spot"), settings(task))


def test_a_taint_of_ones_own_is_followed() -> None:
    """The toleration is of the taint that was declared, not of the one that the capacity kind would have."""
    task = use_pool(step(), "preemptible-cpu-pool", profile=_PREEMPTIBLE)
    assert settings(task)["tolerations"] == [
        {"key": "preemptible", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    ]


def test_a_pool_by_name_is_of_the_profile_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`EBBTIDE_PROFILE` is the default profile, and without it there is an error."""
    monkeypatch.setenv("EBBTIDE_PROFILE", DEV.json())
    assert led(_CPU, settings(use_pool(step(), "cpu-spot"))["nodeAffinity"])
    monkeypatch.delenv("EBBTIDE_PROFILE")
    with pytest.raises(ProfileError, match="EBBTIDE_PROFILE is not set"):
        use_pool(step(), "cpu-spot")


def test_what_kfp_was_told_counts() -> None:
    """Limits that were set through kfp are held against the node, and get the kind of their accelerator."""
    task = use_pool(step().set_accelerator_limit(2), _T4)
    assert task.container_spec is not None
    assert task.container_spec.resources is not None
    assert task.container_spec.resources.accelerator_type == "nvidia.com/gpu"
    limited = step().set_accelerator_limit(8).set_memory_limit("480G").set_cpu_request("64")
    assert len(problems_of(lambda: use_pool(limited, _T4))) == 3


def test_limits_that_a_run_says() -> None:
    """A limit that is a parameter of the run is left to the run, and is of the pool's kind."""

    @dsl.pipeline
    def pipeline(gpus: int, memory: str) -> None:
        task = container_step(rate=0.1).set_accelerator_limit(gpus).set_memory_limit(memory)
        use_pool(task, _T4)
        assert task.container_spec is not None
        assert task.container_spec.resources is not None
        assert task.container_spec.resources.accelerator_type == "nvidia.com/gpu"

    assert pipeline.name == "pipeline"


def test_memory_as_kfp_takes_it() -> None:
    """An amount that kfp has no form for is written in bytes."""
    task = use_pool(step(), _CPU, memory="1.5Gi")
    assert task.container_spec is not None
    assert task.container_spec.resources is not None
    assert task.container_spec.resources.memory_limit == "1610612736"


def test_every_fault_of_a_call_is_reported() -> None:
    """Unknown pool with its near miss, too many GPUs, too much memory, no duration: each in a sentence."""
    problems = problems_of(
        lambda: use_pool(
            step(),
            "t4-spto",
            profile=DEV,
            hard=True,
            fallback=["t4-spot"],
            gpus=8,
            cpu="64",
            memory="480G",
            lasts="long",
        )
    )
    assert all(text.startswith("Step container-step: ") for text in problems)
    message = "\n".join(problems)
    assert "has no pool t4-spto; did you mean t4-spot?" in message
    assert "gpus is 8, and a node of pool t4-spot has 4 nvidia-tesla-t4." in message
    assert "cpu is 64, and a node of pool t4-spot (n1-highmem-8) offers pods 7510m." in message
    assert "memory is 480G, and" in message
    assert "lasts is 'long', which is not a duration" in message
    assert "fallback is for a soft placement" in message
    assert len(problems) == 6


@pytest.mark.parametrize("hard", [True, False])
def test_a_queued_pool_is_for_queues(hard: bool) -> None:  # noqa: FBT001
    """Neither hard nor soft goes a step to nodes that come for queued work alone."""
    (problem,) = problems_of(lambda: use_pool(step(), DEV.pool("a100-queued"), hard=hard, gpus=1))
    assert "name queue a100 instead" in problem


def test_a_fallback_must_fit_too() -> None:
    """A step with GPUs does not fall back to nodes without."""
    (problem,) = problems_of(lambda: use_pool(step(), _T4, hard=False, fallback=[_CPU], gpus=1))
    assert "gpus is 1, and a node of pool cpu-spot has no accelerators." in problem


def test_accelerators_of_one_kind() -> None:
    """A pod asks for one kind: pools of two kinds, and a kind that the pool has not, are refused."""
    assert _T4.accelerator is not None
    other = replace(_T4, name="tpu", accelerator=replace(_T4.accelerator, resource="google.com/tpu"))
    (problem,) = problems_of(lambda: use_pool(step(), _T4, hard=False, fallback=[other], gpus=1))
    assert "google.com/tpu and nvidia.com/gpu" in problem
    old = step().set_accelerator_type("NVIDIA_TESLA_K80")
    (problem,) = problems_of(lambda: use_pool(old, _T4))
    assert "omit set_accelerator_type" in problem


def test_a_step_is_placed_once() -> None:
    """Neither twice by us nor after kfp's own: each affinity would do alone."""
    once = use_pool(step(), _CPU)
    with_affinity = kubernetes.add_node_affinity(step(), [{"key": "a", "operator": "Exists", "values": []}])
    with_selector = kubernetes.add_node_selector(step(), "a", "b")
    for task in (once, with_affinity, with_selector):
        (problem,) = problems_of(lambda task=task: use_pool(task, _T4, gpus=1))
        assert "already placed" in problem
    assert problems_of(lambda: use_queue(once, "t4", profile=DEV, namespace="vision", cpu="1", memory="1Gi"))


def test_a_queue() -> None:
    """A queued step carries the local queue's name and limits, and neither tolerations nor an affinity."""
    task = use_queue(
        step(), DEV.queue("a100"), profile=DEV, namespace="vision", gpus=1, cpu="4", memory="16Gi"
    )
    assert settings(task) == {
        "podMetadata": {
            "labels": {"kueue.x-k8s.io/queue-name": "big"},
            "annotations": {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "604800"},
        }
    }
    assert task.container_spec is not None
    assert task.container_spec.resources is not None
    assert task.container_spec.resources.accelerator_type == "nvidia.com/gpu"


def test_scale_down_waits_for_a_step_that_keeps_its_node() -> None:
    """The annotation is the same on a pool and in a queue."""
    on_pool = use_pool(step(), _CPU, keep_node=True)
    queued = use_queue(
        step(), "t4", profile=DEV, namespace="vision", gpus=1, cpu="4", memory="16Gi", keep_node=True
    )
    for task in (on_pool, queued):
        annotations = settings(task)["podMetadata"]["annotations"]
        assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_what_a_queue_refuses() -> None:
    """An unknown queue, a namespace without the queue, missing amounts."""
    (problem,) = problems_of(lambda: use_queue(step(), "a10", profile=DEV, gpus=1, cpu="1", memory="1Gi"))
    assert "no queue a10; did you mean a100?" in problem
    (problem,) = problems_of(lambda: use_queue(step(), "t4", profile=DEV, gpus=1, cpu="1", memory="1Gi"))
    assert "Queue t4 is not in namespace kubeflow; it is in: vision." in problem
    (problem,) = problems_of(lambda: use_queue(step(), "t4", profile=DEV, namespace="vision", gpus=1))
    assert "cpu and memory are both required" in problem


@pytest.mark.parametrize("hard", [True, False])
def test_a_step_without_gpus_on_nodes_with_gpus(hard: bool) -> None:  # noqa: FBT001
    """Is refused unless gpus=0 is given, to use_pool or kfp; kfp's own limit is enough."""
    (problem,) = problems_of(lambda: use_pool(step(), _T4, hard=hard))
    assert problem.startswith("Step container-step: gpus is missing, and pool t4-spot has only nodes with 4")
    zero = use_pool(step(), _T4, hard=hard, gpus=0)
    assert zero.container_spec is not None
    assert zero.container_spec.resources is None
    use_pool(step().set_accelerator_limit(0), _T4, hard=hard)
    use_pool(step().set_accelerator_limit(1), _T4, hard=hard)
    (problem,) = problems_of(
        lambda: use_queue(step(), "t4", profile=DEV, namespace="vision", cpu="1", memory="1Gi")
    )
    assert "gpus is missing, and queue t4 has only nodes with" in problem
    assert problems_of(lambda: use_pool(step(), _CPU, hard=False, fallback=[_T4]))


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_of_a_step(kind: str) -> None:
    """Are references for the driver: a variable from a key, and a mounted Secret."""
    task = use_secrets(
        step(kind), env={"WANDB_API_KEY": "tracker/api-key"}, volumes={"tracker": "/secrets/tracker"}
    )
    (variable,) = settings(task)["secretAsEnv"]
    assert variable["secretName"] == "tracker"
    assert variable["keyToEnv"] == [{"secretKey": "api-key", "envVar": "WANDB_API_KEY"}]
    (volume,) = settings(task)["secretAsVolume"]
    assert (volume["secretName"], volume["mountPath"]) == ("tracker", "/secrets/tracker")


def test_what_is_wrong_with_the_secrets_of_a_step() -> None:
    """All of it, without a value, and nothing is set."""
    task = step()
    problems = problems_of(lambda: use_secrets(task, env={"KEY": "s3cret"}, volumes={"tracker": "here"}))
    assert [text.partition(": ")[2].partition(" at ")[0][:26] for text in problems] == [
        "secret_env has KEY without",
        "secret_volumes has tracker",
    ]
    assert "s3cret" not in "".join(problems)
    assert settings(task) == {}
    (problem,) = problems_of(lambda: use_secrets(step()))
    assert "no Secret is named" in problem


def test_a_step_is_no_tpu_slice() -> None:
    """One pod cannot use TPUs that are spread over several nodes."""
    assert _T4.accelerator is not None
    tpus = replace(_T4.accelerator, type="tpu-v5-lite-podslice", resource="google.com/tpu", slice_nodes=4)
    pool = replace(_T4, accelerator=tpus)
    slice_of = "a TPU slice of pool t4-spot is 4 nodes, and a step has one pod: use a TrainJob."
    message = f"Step container-step: {slice_of}"
    assert problems_of(lambda: use_pool(step(), pool, gpus=4)) == (message,)
    pools = (pool, *(item for item in DEV.pools if item.name != "t4-spot"))
    needs: dict[str, Any] = {"gpus": 4, "cpu": "1", "memory": "1Gi", "namespace": "vision"}
    assert problems_of(lambda: use_queue(step(), "t4", profile=replace(DEV, pools=pools), **needs)) == (
        message,
    )
