"""Causes of workloads whose pods are missing, have no node, or have not started."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ebbtide.work.evidence import Actor, Cause
from ebbtide.work.progress import cause_of
from tests.unit.runs.waiting import PROFILE, SHORT, Object, evidence, found, refused
from tests.unit.workloads.recorded import condition, event, job, pod

CREATING = "Error creating: "
EXCEEDED = "pods is forbidden: exceeded quota: one, requested: pods=1, used: pods=1, limited: pods=1"
STANDARD = 'pods "train-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot'
T4 = PROFILE.pool("t4")


@pytest.mark.parametrize(("message", "reason"), [(EXCEEDED, "ResourceQuota"), (STANDARD, "PodsRejected")])
def test_pods_that_are_not_created(message: str, reason: str) -> None:
    """The API server's refusal is the cause, until there are pods."""
    refusal = event("j", "FailedCreate", CREATING + message)
    cause = found(job=job(), events=[refusal])
    assert cause.reason == reason
    assert cause.message.endswith(f": {message}")
    assert cause_of(evidence(job=job(), events=[refusal], pods=[pod("a", "Running")])) is None


def test_jobs_between_tries() -> None:
    """A Job whose pods have ended waits for its next try; one that has ended, or succeeded after a failure,
    does not wait."""
    ended = [pod("a", "Failed"), pod("b", "Succeeded")]
    assert cause_of(evidence(job=job(), pods=ended)) is None
    assert found(job=job(), pods=[pod("a", "Failed")]).reason == "Retry"
    assert found(job=job()).reason == "New"
    assert cause_of(evidence(job=job(conditions=(condition("Complete"),)))) is None


def waiting(message: str = "", **spec: Any) -> Object:
    """A pod that the scheduler has refused."""
    item = pod("a", "Pending", node="", conditions=[condition("PodScheduled", "False", message=message)])
    tolerations = [item.manifest() for item in T4.tolerations]
    containers = [{"name": "work", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]
    item["spec"] = {"tolerations": tolerations, "containers": containers, **spec}
    return item


def of_pod(*events: Object, **spec: Any) -> Cause:
    """The cause of a Job with a pod without a node."""
    return found(job=job(), pods=[waiting("0/3 nodes are available: 3 no", **spec)], events=events)


def test_nodes_that_start() -> None:
    """A triggered scale-up means a node on its way."""
    cause = of_pod(event("a", "TriggeredScaleUp", at="2026-11-20T10:08:00Z"))
    assert cause.message == "a node of pool t4 is being created for it since 10:08 UTC"
    earlier = event("a", "NotTriggerScaleUp", at="2026-11-20T10:08:00Z")
    later = event("a", "TriggeredScaleUp", at="2026-11-20T10:08:00Z")
    earlier["metadata"]["resourceVersion"], later["metadata"]["resourceVersion"] = "99", "100"
    assert of_pod(later, earlier).reason == "NodeStarting"
    assert cause.actor is Actor.TIME


def test_a_stock_out() -> None:
    """A failed scale-up ends in a backoff of 5 minutes, twice as long each time, up to 30."""
    failed = event("a", "FailedScaleUp", "GCE out of resources.", at="2026-11-20T10:08:00Z")
    cause = of_pod(failed)
    assert (cause.reason, cause.actor) == ("StockOut", Actor.CLOUD)
    assert cause.until == datetime(2026, 11, 20, 10, 13, tzinfo=UTC)
    assert cause.message == "the cloud could not create a node of pool t4: GCE out of resources"
    message = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    backed_off = event("a", "NotTriggerScaleUp", message, at="2026-11-20T10:09:00Z")
    assert of_pod(failed, backed_off).until == cause.until
    assert of_pod(backed_off).reason == "StockOut"
    assert of_pod({**failed, "count": 9}).until == datetime(2026, 11, 20, 10, 38, tzinfo=UTC)
    quota = event("a", "FailedScaleUp", "GCE quota exceeded", at="2026-11-20T10:08:00Z")
    assert (of_pod(quota).reason, of_pod(quota).actor) == ("CloudQuota", Actor.ADMINISTRATOR)


def test_a_pool_at_its_maximum() -> None:
    """A full pool is the work of others, unless the pod would not fit an empty one."""
    full = event("a", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
    assert of_pod(full).reason == "PoolFull"
    both = {**full, "message": f"{full['message']}, 1 in backoff after failed scale-up"}
    assert of_pod(both).reason == "NoScaleUp"
    large = [{"name": "work", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]
    cause = of_pod(full, containers=large)
    assert cause.reason == "DoesNotFit"
    assert "a pod needs 8 nvidia.com/gpu, and a node of pool t4 has 4 nvidia.com/gpu" in cause.message


def test_a_taint() -> None:
    """The taint of the selected pool that the pod does not tolerate is named."""
    cause = of_pod(tolerations=[], nodeSelector={"cloud.google.com/gke-nodepool": "t4"})
    assert (cause.reason, cause.actor) == ("DoesNotFit", Actor.OWNER)
    assert "it does not tolerate the taint" in cause.message
    assert "nvidia.com/gpu=present:NoSchedule" in cause.message
    assert "pool t4" in cause.message
    assert "pool cpu" not in cause.message


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('persistentvolumeclaim "data" not found', "MissingVolume"),
        ("pod has unbound immediate PersistentVolumeClaims. preemption: no", "UnboundVolume"),
        ("0/1 nodes are available: 1 node(s) had volume node affinity conflict", "VolumeElsewhere"),
    ],
)
def test_volumes(message: str, reason: str) -> None:
    """A volume is the cause before any node."""
    assert found(job=job(), pods=[waiting(message)]).reason == reason


def test_gates() -> None:
    """A pod in a queue has the queue's cause, and another gate is named."""
    gated = waiting(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    assert found(job=None, pods=[gated], workload=refused(SHORT)).reason == "WaitingForQuota"
    other = waiting(schedulingGates=[{"name": "example.com/gate"}])
    assert "example.com/gate" in found(job=None, pods=[other]).message


def test_containers_that_do_not_start() -> None:
    """An image that cannot be pulled, a missing ConfigMap, a volume that is not mounted."""

    def starting(reason: str, message: str) -> Object:
        state = {"waiting": {"reason": reason, "message": message}}
        return pod("a", "Pending", containerStatuses=[{"name": "work", "image": "acme/x:1", "state": state}])

    cause = found(job=job(), pods=[starting("ImagePullBackOff", "not found.")])
    assert cause.message == "the node cannot pull its image acme/x:1: ImagePullBackOff: not found"
    missing = found(job=job(), pods=[starting("CreateContainerConfigError", 'configmap "a" not found')])
    assert missing.reason == "CreateContainerConfigError"
    usual = starting("ContainerCreating", "")
    mount = event("a", "FailedMount", "MountVolume.SetUp failed: timed out.")
    assert found(job=job(), pods=[usual], events=[mount]).reason == "FailedMount"
    cause = found(job=job(), pods=[usual], events=[mount], missing=["train-code"])
    assert cause.message.startswith("its ConfigMap train-code does not exist, and it waits on node n")
    assert found(job=job(), pods=[usual]).reason == "Starting"
