"""Causes of workloads that wait in a queue."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ebbtide.work.evidence import Actor
from ebbtide.work.progress import cause_of
from tests.pages import output
from tests.repository import ROOT
from tests.unit.runs.waiting import (
    SHORT,
    cluster_queue,
    evidence,
    found,
    holder,
    local_queue,
    refused,
    workload,
)
from tests.unit.workloads.recorded import condition, job

ABOVE = (
    "insufficient quota for nvidia.com/gpu in flavor t4, previously considered podsets requests (0) + "
    "current podset request (32) > maximum capacity (16)"
)


def test_quota_held_by_others() -> None:
    """The largest holders of the missing resource are named, of other namespaces with their namespace, as in
    docs/workloads.md."""
    holders = [holder("bert", "speech", 12), holder("vit", "vision", 4), holder("a", "vision", 0)]
    cause = found(workload=refused(SHORT), workloads=holders, is_complete=True)
    assert (cause.reason, cause.actor) == ("WaitingForQuota", Actor.OTHERS)
    assert cause.message == (
        "queue gpus lacks 4 nvidia.com/gpu of free quota in flavor t4, held by speech/bert (12 "
        "nvidia.com/gpu) and vit (4 nvidia.com/gpu)"
    )
    one = found(workload=refused(SHORT), workloads=[holder("bert", "speech", 4)], is_complete=True)
    assert output("docs/workloads.md", "Job train waits:") == [f"Job train waits: {one}\n"]
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
    template["nodeSelector"] = {"cloud.google.com/gke-nodepool": "cpu"}
    template["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
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
    page = (ROOT / "docs" / "workloads.md").read_text().partition("| Reason | Cause | Actor |")[2]
    cells = [line.split("|")[1] for line in page.partition("\n\n")[0].splitlines()[2:]]
    assert {reason for cell in cells for reason in re.findall(r"`(\w+)`", cell)} == reasons
