"""Causes of workloads that wait in a queue, and of pods that wait."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ebbtide.placement import Profile
from ebbtide.work.evidence import Actor, Cause
from ebbtide.work.progress import cause_of
from tests.pages import output
from tests.repository import ROOT
from tests.unit.work.recorded import condition, event, job, pod
from tests.unit.work.waiting import (
    PROFILE,
    SHORT,
    Object,
    cluster_queue,
    evidence,
    found,
    holder,
    local_queue,
    refused,
    workload,
)

ABOVE = (
    "insufficient quota for nvidia.com/gpu in flavor t4, previously considered podsets requests (0) + "
    "current podset request (32) > maximum capacity (16)"
)


def test_quota_held_by_others() -> None:
    """The largest holders of the missing resource are named, of other namespaces with their namespace, as in
    docs/following.md."""
    holders = [holder("bert", "speech", 12), holder("vit", "vision", 4), holder("a", "vision", 0)]
    cause = found(workload=refused(SHORT), workloads=holders, is_complete=True)
    assert (cause.reason, cause.actor) == ("WaitingForQuota", Actor.OTHERS)
    assert cause.message == (
        "queue gpus lacks 4 nvidia.com/gpu of free quota in flavor t4, held by speech/bert (12 "
        "nvidia.com/gpu) and vit (4 nvidia.com/gpu)"
    )
    one = found(workload=refused(SHORT), workloads=[holder("bert", "speech", 4)], is_complete=True)
    assert output("docs/following.md", "Job train waits:") == [f"Job train waits: {one}\n"]
    hidden = found(workload=refused(SHORT), workloads=holders[1:])
    assert "or of namespaces that you may not read" in hidden.remedy
    alone = found(workload=refused(SHORT))
    assert "held by workloads of other namespaces" in alone.message


def test_quota_after_a_preemption() -> None:
    """A preempted workload that waits for quota again says so."""
    message = (
        "Preempted to accommodate a workload (UID: w, JobUID: j2) due to Fair Sharing within the cohort; "
        "preemptor path: /train/speech.gpus; preemptee path: /train/vision.gpus"
    )
    again = refused(SHORT)
    again["status"]["conditions"].append(condition("Preempted", message=message))
    by = "it was preempted by {} (Fair Sharing within the cohort), and queue gpus lacks"
    hidden = by.format("a workload of ClusterQueue speech.gpus")
    assert found(workload=again).message.startswith(hidden)
    preemptor = holder("bert", "speech", 4)
    preemptor["metadata"]["labels"] = {"kueue.x-k8s.io/job-uid": "j2"}
    named = found(workload=again, workloads=[preemptor])
    assert named.message.startswith(by.format("speech/bert"))


def test_quota_of_finished_workloads() -> None:
    """A finished workload holds no quota."""
    ended = holder("old", "vision", 4)
    ended["status"]["conditions"].append(condition("Finished"))
    assert "old" not in found(workload=refused(SHORT), workloads=[ended]).message


def test_preemption_in_progress() -> None:
    """A workload for which others are preempted waits for their end."""
    cause = found(workload=refused(f"{SHORT}. Pending the preemption of 2 workload(s)"))
    assert (cause.reason, cause.actor) == ("WaitingForPreemption", Actor.TIME)
    assert "2 workloads" in cause.message


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (ABOVE, "it requests 32 nvidia.com/gpu, and flavor t4 has 16 nvidia.com/gpu in all"),
        (
            "untolerated taint {dedicated speech NoSchedule <nil>} in flavor t4",
            "it does not tolerate the taint dedicated=speech:NoSchedule of flavor t4",
        ),
        ("flavor t4 doesn't match node affinity", "its node selector excludes flavor t4"),
        ("resource google.com/tpu unavailable in ClusterQueue", "its pools have no google.com/tpu"),
    ],
)
def test_flavors_that_never_fit(reason: str, message: str) -> None:
    """A request that no flavor could take without other work is the owner's to change."""
    cause = found(workload=refused(reason))
    assert (cause.reason, cause.actor) == ("DoesNotFit", Actor.OWNER)
    assert cause.message == f"it can never start in queue gpus: {message}"


def test_a_pod_larger_than_a_node() -> None:
    """Quota is a sum over nodes: a pod that no node can take is found from the profile."""
    large = refused(SHORT)
    large["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] = {
        "nvidia.com/gpu": "8"
    }
    cause = found(workload=large)
    assert cause.reason == "DoesNotFit"
    assert "a node of pool t4 has 4 nvidia.com/gpu" in cause.message


def test_another_queue_that_fits() -> None:
    """A workload that its queue can never run is sent to a queue of its namespace that can."""
    selecting = refused("flavor t4 doesn't match node affinity")
    template = selecting["spec"]["podSets"][0]["template"]["spec"]
    template["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    for selector in ({}, {"cloud.google.com/gke-nodepool": "cpu"}):
        template["nodeSelector"] = selector
        assert found(workload=selecting).remedy == "its owner can submit it to queue cpus, where it fits"
    template["containers"][0]["resources"] = {"requests": {"cpu": "100"}}
    assert "with other requests" in found(workload=selecting).remedy


def test_a_queue_that_does_not_exist() -> None:
    """The queues of the namespace are named."""
    elsewhere = workload(spec={"queueName": "gpu"})
    cause = found(workload=elsewhere)
    assert cause.message == "namespace vision has no queue gpu"
    assert cause.remedy == "its owner can submit it to queue gpus"


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_held_queues(policy: str) -> None:
    """A hold is named with the object that an administrator releases."""
    pending = workload(condition("QuotaReserved", "False", message="LocalQueue gpus is inactive"))
    local = found(workload=pending, local_queues=[local_queue(stopPolicy=policy)])
    assert (local.reason, local.actor) == ("Held", Actor.ADMINISTRATOR)
    assert "LocalQueue gpus of namespace vision" in local.remedy
    cause = found(workload=pending, cluster_queue=cluster_queue(stopPolicy=policy))
    assert "ClusterQueue vision.gpus" in cause.remedy
    asleep = cluster_queue(stopPolicy=policy, annotations={"ebbtide.dev/asleep": "None"})
    assert found(workload=pending, cluster_queue=asleep).reason == "Asleep"


def test_an_inactive_cluster_queue() -> None:
    """Administrators see what is wrong with it; members, who may not read it, see that it is inactive."""
    inactive = condition("Active", "False", reason="ClusterQueueIsInactive", message="Can't submit")
    message = "Can't admit new workloads: references missing AdmissionCheck(s): queued."
    broken = cluster_queue(condition("Active", "False", reason="AdmissionCheckNotFound", message=message))
    pending, local = workload(), [local_queue(inactive)]
    cause = found(workload=pending, local_queues=local, cluster_queue=broken)
    assert cause.reason == "Misconfigured"
    assert "references missing AdmissionCheck(s): queued" in cause.message
    member = found(workload=pending, local_queues=local)
    assert (member.reason, member.actor) == ("QueueInactive", Actor.ADMINISTRATOR)


def test_a_deactivated_workload() -> None:
    """The reason of the deactivation is that of its last eviction."""
    message = "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
    cause = found(workload=workload(condition("Evicted", message=message), spec={"active": False}))
    assert cause.message == "it is deactivated: exceeding the maximum number of re-queuing retries"
    assert "rerun train -n vision" in cause.remedy
    step = cause_of(replace(evidence(workload=workload(spec={"active": False})), kind="pipeline run"))
    assert step is not None
    assert step.remedy == "its owner can submit it again"


def test_a_backoff_after_an_eviction() -> None:
    """An evicted workload waits until the time of its requeueing, and not afterwards."""
    evicted = condition("Evicted", reason="PodsReadyTimeout", message="Exceeded the PodsReady timeout 5m0s")
    state = {"count": 2, "requeueAt": "2026-11-20T10:12:00Z"}
    cause = found(workload=workload(evicted, requeueState=state))
    assert (cause.reason, cause.until) == ("Backoff", datetime(2026, 11, 20, 10, 12, tzinfo=UTC))
    assert "evicted 2 times" in cause.message
    assert "10:12 UTC: Exceeded the PodsReady timeout 5m0s" in cause.message
    past = workload(evicted, requeueState={**state, "requeueAt": "2026-11-20T10:00:00Z"})
    assert found(workload=past).reason == "InQueue"


def test_a_place_in_the_queue() -> None:
    """A workload that Kueue has not tried yet is behind those before it."""
    cause = found(workload=workload(), position=3, ahead=["a", "b"])
    assert cause.message == "it is number 3 in queue gpus, behind a and b"
    assert cause.actor is Actor.TIME


def test_capacity_from_the_cloud() -> None:
    """A reserved workload waits for its ProvisioningRequest, and after a failure for the next one."""
    reserved = condition("QuotaReserved")
    check = {"name": "queued", "state": "Pending", "message": "Waiting for resources"}
    cause = found(workload=workload(reserved, admissionChecks=[check]))
    assert (cause.reason, cause.actor) == ("WaitingForCapacity", Actor.CLOUD)
    assert "queued has requested its nodes from the cloud: Waiting for resources" in cause.message
    retry = {
        **check,
        "state": "Retry",
        "lastTransitionTime": "2026-11-20T10:09:00Z",
        "requeueAfterSeconds": 120,
        "message": "Retrying after failure: Out of stock",
    }
    failed = found(workload=workload(reserved, admissionChecks=[retry]))
    assert (failed.reason, failed.until) == ("StockOut", datetime(2026, 11, 20, 10, 11, tzinfo=UTC))
    rejected = found(workload=workload(reserved, admissionChecks=[{**check, "state": "Rejected"}]))
    assert (rejected.reason, rejected.actor) == ("CheckRejected", Actor.OWNER)


def test_versions_that_never_start() -> None:
    """An admitted TrainJob that stays suspended is a pair of versions: the Trainer lacks Kueue's field."""
    admitted = workload(
        condition("QuotaReserved"), condition("Admitted", at="2026-11-20T10:05:00Z"), name="train"
    )
    stuck = evidence(workload=admitted, has_runtime_patches=False)
    cause = cause_of(replace(stuck, kind="TrainJob"))
    assert cause is not None
    assert (cause.reason, cause.actor) == ("IncompatibleVersions", Actor.ADMINISTRATOR)
    assert cause.message.startswith("Kueue admitted it 5 min ago and cannot resume it")
    assert found(workload=admitted).reason == "NotResumed"
    recent = workload(condition("QuotaReserved"), condition("Admitted", at="2026-11-20T10:09:50Z"))
    assert found(workload=recent).reason == "Starting"


def test_a_suspended_job_without_a_workload() -> None:
    """A Job in no queue is suspended by its owner; one in a queue is not managed, or new."""
    assert found(job=job(spec={"suspend": True})).reason == "Suspended"
    assert found().reason == "NotManaged"
    assert found(now=datetime(2026, 11, 20, 10, 0, 5, tzinfo=UTC)).reason == "New"


def test_the_document() -> None:
    """A cause is one sentence, and a part of a document."""
    cause = found(workload=workload(), position=1)
    assert str(cause) == "it is number 1 in queue gpus; Kueue tries it in its turn."
    assert cause.document() == {
        "reason": "InQueue",
        "message": "it is number 1 in queue gpus",
        "remedy": "Kueue tries it in its turn",
        "actor": "time",
        "until": None,
    }


def test_reasons_on_the_page() -> None:
    """Every reason is in the table of the page on workloads, and no other."""
    files = ("queue_causes", "pod_causes", "progress")
    code = "".join((ROOT / "ebbtide" / "work" / f"{name}.py").read_text() for name in files)
    written = set(re.findall(r'reason="(\w+)"|"(\w+)" if quota else "(\w+)"', code))
    reasons = {reason for groups in written for reason in groups if reason}
    page = (ROOT / "docs" / "following.md").read_text().partition("| Reason | Cause | Actor |")[2]
    cells = [line.split("|")[1] for line in page.partition("\n\n")[0].splitlines()[2:]]
    assert {reason for cell in cells for reason in re.findall(r"`(\w+)`", cell)} == reasons


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
    for failed, wait in ((1, "10s"), (3, "40s"), (9, "6m")):
        cause = found(job=job(failed=failed), pods=[pod("a", "Failed")])
        assert (cause.reason, cause.remedy) == ("Retry", f"the next pod is created within {wait}")
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


def test_a_pool_outside_its_period() -> None:
    """The begin and the end of the only pool's reservation explain more than the autoscaler's attempts."""
    failed = event("a", "FailedScaleUp", "GCE out of resources.", at="2026-11-20T10:08:00Z")

    def cause(*period: str) -> Cause:
        pools = tuple(replace(pool, period=period) if pool.name == "t4" else pool for pool in PROFILE.pools)
        profile = Profile.load(replace(PROFILE, pools=pools).data())
        return found(job=job(), pods=[waiting()], events=[failed], profile=profile)

    before = cause("2026-11-21T08:00:00Z", "2026-11-28T08:00:00Z")
    assert before.message == "the reservation of pool t4 begins at 2026-11-21 08:00 UTC"
    assert (before.reason, before.until) == ("ReservationNotBegun", datetime(2026, 11, 21, 8, tzinfo=UTC))
    assert cause("2026-11-20T08:00:00Z", "2026-11-28T08:00:00Z").reason == "StockOut"
    after = cause("2026-11-13T08:00:00Z", "2026-11-20T10:10:00Z")
    assert (after.reason, after.actor) == ("ReservationEnded", Actor.OWNER)
    assert "ended at 2026-11-20 10:10 UTC" in after.message


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
