from typing import Any

import pytest

from ebbtide.placement import Profile
from ebbtide.work.errors import WorkloadError
from ebbtide.work.training import TrainPlacement, train_job
from tests.declarations import GKE, changed
from tests.unit.work.clusters import DEV, derived, problems_of
from tests.unit.work.kubeflow_sdk import (
    KubernetesBackend,
    as_trainer_reads,
    options,
    resources_per_node,
)


def _applied(placement: TrainPlacement) -> dict[str, Any]:
    """Return the TrainJob that the SDK makes of the options: its backend, without the cluster that its
    constructor needs."""
    job: dict[str, Any] = {}
    backend = object.__new__(KubernetesBackend)
    for option in placement.options():
        option(job, None, backend)
    return job


def _pod(patch: dict[str, Any]) -> dict[str, Any]:
    (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == "node"
    return job["template"]["spec"]["template"]["spec"]


def _problems(profile: Profile = DEV, **fields: Any) -> tuple[str, ...]:
    return problems_of(lambda: train_job(profile, **fields))


def test_the_sdk_sends_what_trainer_takes() -> None:
    """Manifest and options are TrainJobs as Trainer's own models have them, with no field that they drop."""
    placement = train_job(DEV, pool="t4-spot", nodes=2, gpus=4, cpu="4", memory="40Gi", namespace="lab")
    manifest = placement.manifest()
    spec: dict[str, Any] = {"runtimeRef": {"name": "torch-distributed"}, **manifest["spec"]}
    sent = as_trainer_reads("TrainJobSpec", spec)
    assert sent["runtimePatches"] == spec["runtimePatches"]
    assert sent["trainer"]["numNodes"] == 2
    assert sent["trainer"]["resourcesPerNode"]["limits"] == {
        "cpu": "4",
        "memory": "40Gi",
        "nvidia.com/gpu": "4",
    }
    (by_manifest,) = spec["runtimePatches"]
    tolerations = [item.manifest() for item in DEV.pool("t4-spot").tolerations]
    assert _pod(by_manifest)["tolerations"] == tolerations
    for patch in _applied(placement)["spec"]["runtimePatches"]:
        assert as_trainer_reads("RuntimePatch", patch) == patch
        assert _pod(patch) == _pod(by_manifest)


def test_resources_are_as_the_sdk_reads_them() -> None:
    """The trainer of the SDK takes the same resources, without renaming any."""
    placement = train_job(DEV, pool="t4-spot", gpus=4, cpu="4", memory="40Gi")
    assert resources_per_node(placement.resources) == placement.resources


def test_a_queue() -> None:
    """A queued job has the queue's label and the run's length, and no patch: Kueue makes its own."""
    placement = train_job(DEV, queue="a100", nodes=10, gpus=1, cpu="4", memory="16Gi", max_run="12h")
    labels = {"kueue.x-k8s.io/queue-name": "big"}
    annotations = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "43200"}
    assert placement.options() == [options.Labels(labels), options.Annotations(annotations)]
    assert placement.manifest()["metadata"] == {
        "namespace": "vision",
        "labels": labels,
        "annotations": annotations,
    }
    assert "runtimePatches" not in placement.manifest()["spec"]


def test_scale_down_waits_for_pods_that_keep_their_nodes() -> None:
    """The annotation is a patch of the pods' template, by option and by manifest alike."""
    placement = train_job(DEV, queue="a100", gpus=1, cpu="4", memory="16Gi", keep_node=True)
    for made in (_applied(placement), placement.manifest()):
        (patch,) = made["spec"]["runtimePatches"]
        (patched,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        template = patched["template"]["spec"]["template"]
        assert template["metadata"] == {
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
        }
        assert not template.get("spec")


def test_what_is_refused() -> None:
    """A pool that is not there, too much for a node, more pods than ever run at once, nothing to place."""
    assert "did you mean t4-spot?" in _problems(pool="t4-sopt")[0]
    assert "a node of pool t4-spot has 4 nvidia-tesla-t4" in _problems(pool="t4-spot", gpus=8)[0]
    (problem,) = _problems(pool="t4-spot", nodes=9, gpus=2)
    assert problem.startswith("nodes is 9, and pool t4-spot has capacity for 8 such pods: ")
    assert "gpus is missing, and pool t4-spot has only nodes" in _problems(pool="t4-spot")[0]
    (problem,) = _problems(queue="a100", nodes=11, gpus=1, cpu="1", memory="1Gi")
    assert "pool a100-queued has capacity for 10 such pods" in problem
    assert len(_problems(pool="t4-spot", gpus=0, nodes=0, jobs=[])) == 2
    assert "Neither a pool nor a queue" in _problems()[0]


def test_the_room_is_that_of_pools_that_can_run_it() -> None:
    """A queue's pool without GPUs offers none to pods with GPUs, however large it is."""
    queues = [{"name": "mixed", "pools": ["cpu", "gpu"]}]
    accelerator = {"type": "nvidia-tesla-t4"}
    pools = [
        GKE["pools"][0],
        {"name": "cpu", "machine": "n2-standard-32", "nodes": {"max": 50}},
        {"name": "gpu", "machine": "n1-standard-8", "accelerator": accelerator, "nodes": {"max": 2}},
    ]
    mixed = derived(changed(GKE, pools=pools, queues=queues, teams=[{"name": "vision"}]))
    (problem,) = _problems(mixed, queue="mixed", nodes=3, gpus=1, cpu="1", memory="1Gi")
    assert problem.startswith("nodes is 3, and pool gpu has capacity for 2 such pods")


def test_secrets() -> None:
    """A mounted Secret is a patch by option and manifest alike; a variable is the trainer's own."""
    mounted = train_job(DEV, pool="t4-spot", gpus=4, secret_volumes={"tracker": "/secrets/tracker"})
    (by_option,) = _applied(mounted)["spec"]["runtimePatches"]
    (by_manifest,) = mounted.manifest()["spec"]["runtimePatches"]
    assert _pod(by_option) == _pod(by_manifest)
    assert _pod(by_option)["volumes"] == [{"name": "secret-0", "secret": {"secretName": "tracker"}}]
    assert _pod(by_option)["containers"] == [
        {
            "name": "node",
            "volumeMounts": [{"name": "secret-0", "mountPath": "/secrets/tracker", "readOnly": True}],
        }
    ]
    assert as_trainer_reads("RuntimePatch", by_manifest) == by_manifest
    variable = train_job(DEV, pool="t4-spot", gpus=4, secret_env={"WANDB_API_KEY": "tracker/api-key"})
    reference = {"secretKeyRef": {"name": "tracker", "key": "api-key"}}
    spec = variable.manifest()["spec"]
    assert spec["trainer"]["env"] == [{"name": "WANDB_API_KEY", "valueFrom": reference}]
    assert (
        as_trainer_reads("TrainJobSpec", {"runtimeRef": {"name": "x"}, **spec})["trainer"] == spec["trainer"]
    )
    with pytest.raises(WorkloadError, match="or use manifest"):
        variable.options()
    (problem,) = _problems(pool="t4-spot", gpus=4, secret_env={"KEY": "s3cret"})
    assert problem.startswith("secret_env has KEY without a reference")
