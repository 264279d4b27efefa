"""Progress of a Job, from its objects in the API."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from ebbtide.work.objects import Object, condition, disrupted, phase_of, waits
from ebbtide.work.reasons import no_node, not_started, queued_for

INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation and label with the index of a pod of an Indexed Job."""


class Phase(StrEnum):
    """Phase of a Job."""

    QUEUED = "queued"
    WAITING = "waiting for a node"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """Snapshot of a Job's objects.

    Attributes:
        job: the Job, or another workload in the form of a Job.
        pods: its existing pods.
        workload: its Kueue Workload; None if it has none.
        events: events of a pending pod.
        label: label of the pods, `key=value`, for a log query; empty for a Job.
    """

    job: Object
    pods: Sequence[Object] = ()
    workload: Object | None = None
    events: Sequence[Object] = ()
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a Job.

    Attributes:
        phase: its phase.
        reason: the reason of the phase; empty if it is obvious.
        points: required completions; 1 for a plain Job.
        done: completions.
        failed: failed indexes of a sweep.
        running: running pods.
        waiting: pods without a node.
        retries: number of retried failures.
        disrupted: uids of pods that a disruption ended, including deleted ones.
    """

    phase: Phase
    reason: str = ""
    points: int = 1
    done: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0
    retries: int = 0
    disrupted: frozenset[str] = frozenset()

    @property
    def over(self) -> bool:
        """True if the Job has ended."""
        return self.phase in {Phase.COMPLETED, Phase.FAILED}


def progress(snapshot: JobSnapshot, before: frozenset[str] = frozenset()) -> Progress:
    """Derive the progress of a Job.

    Args:
        snapshot: the snapshot.
        before: pods that earlier snapshots show as disrupted. A pod is deleted with its node, and the Job
            counts no disruptions.
    """
    spec, status = snapshot.job["spec"], snapshot.job.get("status", {})
    alive = [pod for pod in snapshot.pods if "deletionTimestamp" not in pod["metadata"]]
    waiting = [pod for pod in alive if waits(pod)]
    running = sum(phase_of(pod) == "Running" for pod in alive)
    failed = count_indexes(status.get("failedIndexes") or "")
    phase, reason = _phase(snapshot, waiting, running)
    return Progress(
        phase=phase,
        reason=reason,
        points=spec.get("completions") or 1,
        done=int(status.get("succeeded") or 0),
        failed=failed,
        running=running,
        waiting=len(waiting),
        retries=_retries(spec, status, failed, over=phase is Phase.FAILED),
        disrupted=before | {pod["metadata"]["uid"] for pod in snapshot.pods if disrupted(pod)},
    )


def count_indexes(text: str) -> int:
    """Count the indexes in a Job's notation, `1,3-5,7`."""
    return sum(1 for _ in indexes(text))


def indexes(text: str) -> Iterable[int]:
    """Yield the indexes in a Job's notation, `1,3-5,7`, in order."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _phase(snapshot: JobSnapshot, waiting: Sequence[Object], running: int) -> tuple[Phase, str]:
    if condition(snapshot.job, "Complete"):
        return Phase.COMPLETED, ""
    if failure := condition(snapshot.job, "Failed"):
        return Phase.FAILED, failure.get("message") or failure.get("reason") or ""
    if snapshot.job["spec"].get("suspend"):
        return Phase.QUEUED, queued_for(snapshot.workload)
    without = no_node(waiting[0], snapshot.events) if waiting else ""
    # A Job is not complete yet when its pods have succeeded, and no longer starting.
    succeeded = sum(phase_of(pod) == "Succeeded" for pod in snapshot.pods)
    if running or succeeded >= (snapshot.job["spec"].get("completions") or 1):
        return Phase.RUNNING, without
    if waiting:
        return Phase.WAITING, without
    return Phase.STARTING, not_started(snapshot.pods)


def _retries(spec: Object, status: Object, failed: int, *, over: bool) -> int:
    """Return the number of retried failures: all but the last of each index, or of the Job, that failed
    permanently. The Job's count excludes failures that a rule of the failure policy ignores."""
    last = failed if spec.get("backoffLimitPerIndex") is not None else int(over)
    return max(0, int(status.get("failed") or 0) - last)


def age_seconds(job: Object) -> int | None:
    """Return the time from a Job's creation to its end; None before its end."""
    ended = condition(job, "Complete") or condition(job, "Failed")
    if not ended:
        return None
    begun = datetime.fromisoformat(job["metadata"]["creationTimestamp"])
    return max(0, round((datetime.fromisoformat(ended["lastTransitionTime"]) - begun).total_seconds()))
