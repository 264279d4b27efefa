"""The cause of a workload's waiting, from its objects."""

from typing import Final

from ebbtide.work.objects import Object, condition, phase_of, waits
from ebbtide.work.runs.pending.cause import Actor, Cause
from ebbtide.work.runs.pending.evidence import Evidence, is_gated
from ebbtide.work.runs.pending.pod_causes import between_tries, missing_pods, pending_pod
from ebbtide.work.runs.pending.queue_causes import queue_cause

_NEW: Final = Cause(
    reason="New",
    message="its pods have not been created yet",
    remedy="that takes seconds",
    actor=Actor.TIME,
)
_RETRY: Final = Cause(
    reason="Retry",
    message="its pods have ended, and its controller waits before the next try",
    remedy="the next one starts within 6 minutes",
    actor=Actor.TIME,
)
"""Wait after failures of a Job: 10 s, twice as long each time, up to 6 minutes (Kubernetes docs, Job, pod
backoff failure policy)."""


def cause_of(evidence: Evidence) -> Cause | None:
    """Return why a workload, or a part of it, is waiting; None if nothing waits."""
    job, workload = evidence.job, evidence.workload
    if job is not None and (condition(job, "Complete") or condition(job, "Failed")):
        return None
    if job is not None and job["spec"].get("suspend"):
        return queue_cause(evidence)
    if workload is not None and not condition(workload, "Admitted") and any(map(is_gated, evidence.pods)):
        return queue_cause(evidence)
    alive = [pod for pod in evidence.pods if "deletionTimestamp" not in pod["metadata"]]
    pending = [pod for pod in alive if phase_of(pod) == "Pending"]
    if pending:
        return pending_pod(evidence, min(pending, key=_order))
    phases = [phase_of(pod) for pod in alive]
    if (
        "Running" in phases
        or job is None
        or phases.count("Succeeded") >= (job["spec"].get("completions") or 1)
    ):
        return None
    return missing_pods(evidence, job) or (_RETRY if between_tries(alive) else _NEW)


def _order(pod: Object) -> tuple[bool, str]:
    """Return the order in which pods explain a workload: those without a node first."""
    return not waits(pod), str(pod["metadata"]["name"])
