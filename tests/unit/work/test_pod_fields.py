"""Priority, shared memory and image pull secrets: in Jobs, sweeps, trials, TrainJobs and steps."""

from typing import Any

import pytest

from ebbtide.placement import Profile
from ebbtide.placement.queue_objects import priority_objects
from ebbtide.work.experiments import Double, experiment
from ebbtide.work.jobs import job, job_over_nodes
from ebbtide.work.pipelines import use_pool, use_queue, use_secrets
from ebbtide.work.sweeps import sweep
from ebbtide.work.training import train_job
from tests.manifests import assert_valid
from tests.unit.work.clusters import DEV, PROFILES, problems_of
from tests.unit.work.katib_sdk import as_katib_reads
from tests.unit.work.kubeflow_sdk import KubernetesBackend, as_trainer_reads
from tests.unit.work.steps import settings, step

_QUEUED: Any = {"queue": "a100", "namespace": "vision", "gpus": 1, "cpu": "1", "memory": "16Gi"}
_GIVEN: Any = {
    **_QUEUED,
    "priority": "ebbtide-high",
    "shared_memory": "8Gi",
    "image_pull_secrets": ["registry", "team.registry"],
}
_NAMED: Any = {"name": "train", "image": "busybox", "command": ["train"]}
_LABELS = {"kueue.x-k8s.io/queue-name": "big", "kueue.x-k8s.io/priority-class": "ebbtide-high"}
_VOLUME = {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
_MOUNT = {"name": "shared-memory", "mountPath": "/dev/shm"}  # noqa: S108 - a mount point
_PULL = [{"name": "registry"}, {"name": "team.registry"}]


def _trial() -> dict[str, Any]:
    fields: Any = _NAMED | _GIVEN | {"command": ["train", "${trialParameters.lr}"]}
    made = experiment(
        DEV,
        {"lr": Double(0.1, 1)},
        objective_metric_name="loss",
        objective_type="minimize",
        max_trial_count=3,
        **fields,
    )
    assert as_katib_reads(made) == made
    return made["spec"]["trialTemplate"]["trialSpec"]


def _problems(profile: Profile = DEV, **fields: Any) -> tuple[str, ...]:
    return problems_of(lambda: job(profile, **_NAMED | fields))


@pytest.mark.parametrize(
    "made",
    [
        job(DEV, **_NAMED, **_GIVEN),
        sweep(DEV, {"lr": [1]}, **_NAMED, **_GIVEN),
        job_over_nodes(DEV, 2, **_NAMED, **_GIVEN)[0],
        _trial(),
    ],
    ids=["job", "sweep", "nodes", "trial"],
)
def test_jobs_of_every_kind(made: dict[str, Any]) -> None:
    """The Job has the priority; its pods have the volume and the references."""
    assert_valid({**made, "metadata": {"name": "train", **made["metadata"]}}, "1.35")
    assert made["metadata"]["labels"] == _LABELS
    pod = made["spec"]["template"]["spec"]
    assert pod["volumes"] == [_VOLUME]
    assert pod["containers"][0]["volumeMounts"] == [_MOUNT]
    assert pod["imagePullSecrets"] == _PULL


def test_a_train_job() -> None:
    """The same by the SDK's options as in a manifest."""
    placement = train_job(DEV, **_GIVEN)
    assert placement.labels == _LABELS
    (patch,) = placement.manifest()["spec"]["runtimePatches"]
    assert as_trainer_reads("RuntimePatch", patch) == patch
    replicated = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = replicated[0]["template"]["spec"]["template"]["spec"]
    mounted = [{"name": "node", "volumeMounts": [_MOUNT]}]
    assert pod == {"volumes": [_VOLUME], "containers": mounted, "imagePullSecrets": _PULL}
    made: dict[str, Any] = {"spec": {}}
    for option in placement.options():
        option(made, None, KubernetesBackend.__new__(KubernetesBackend))
    (by_option,) = made["spec"]["runtimePatches"]
    assert by_option["trainingRuntimeSpec"] == patch["trainingRuntimeSpec"]


def test_a_step() -> None:
    """In a queue with a priority, on a pool, and with its own Secrets for the image."""
    needs: Any = {"gpus": 1, "cpu": "1", "memory": "16Gi", "shared_memory": "8Gi"}
    queued = use_queue(step(), "a100", profile=DEV, namespace="vision", priority="ebbtide-high", **needs)
    assert settings(queued)["podMetadata"]["labels"] == _LABELS
    placed = use_pool(step(), DEV.pool("t4-spot"), **needs)
    mount = {"volumeName": "shared-memory", "mountPath": "/dev/shm", "medium": "Memory", "sizeLimit": "8Gi"}  # noqa: S108
    for task in (queued, placed):
        assert settings(task)["emptyDirMounts"] == [mount]
    pulled = use_secrets(step(), image_pull_secrets=["registry", "team.registry"])
    assert [item["secretName"] for item in settings(pulled)["imagePullSecret"]] == [
        "registry",
        "team.registry",
    ]
    problems = problems_of(lambda: use_pool(step(), DEV.pool("cpu-spot"), memory="1Gi", shared_memory="1Gi"))
    assert "shared_memory is 1Gi, which is part of memory, and memory is 1Gi" in problems[0]
    assert problems_of(lambda: use_secrets(step(), image_pull_secrets=["_"]))


def test_priorities_are_those_of_the_cluster() -> None:
    """The profile lists what the stack creates, and a profile without any is written again."""
    assert list(DEV.priorities) == [item["metadata"]["name"] for item in priority_objects()]
    assert Profile.load(DEV.data()) == DEV
    (problem,) = _problems(**_QUEUED, priority="high")
    assert problem.endswith("write one of ebbtide-low, ebbtide-normal, ebbtide-high.")
    older = {key: value for key, value in DEV.data().items() if key != "priorities"}
    (problem,) = _problems(Profile.load(older), **_QUEUED, priority="ebbtide-high")
    assert problem.endswith("its profile lists none: write the profile again, or omit priority.")
    (problem,) = _problems(pool="cpu-spot", priority="ebbtide-high")
    assert problem.endswith("orders work in a queue: name a queue instead of pool cpu-spot.")


def test_no_priorities_without_queues() -> None:
    """A cluster without Kueue has no WorkloadPriorityClass."""
    assert {(bool(item.queues), bool(item.priorities)) for item in PROFILES.values()} == {
        (False, False),
        (True, True),
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shared_memory": "1Gi"}, "shared_memory is given without memory"),
        ({"shared_memory": "1Gi", "memory": "512Mi"}, "is part of memory, and memory is 512Mi"),
        (
            {"shared_memory": "much", "memory": "1Gi"},
            "shared_memory is 'much', which is not an amount of memory",
        ),
        (
            {"shared_memory": "1Gi", "memory": "2Gi", "volume": "shared", "mount_path": "/dev/shm"},  # noqa: S108
            "is where shared_memory is mounted",
        ),
        (
            {"shared_memory": "1Gi", "memory": "2Gi", "secret_volumes": {"a": "/dev/shm"}},  # noqa: S108
            "is where shared_memory is mounted",
        ),
        ({"image_pull_secrets": ["_"]}, "image_pull_secrets has '_', which is not a valid name of a Secret."),
        ({"image_pull_secrets": "registry"}, "image_pull_secrets is a text; write a list, ['registry']."),
    ],
)
def test_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    """In one sentence each."""
    (problem,) = _problems(pool="cpu-spot", **fields)
    assert message in problem
