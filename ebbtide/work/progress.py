"""State of a workload in one word, the cause of its waiting, and messages about its progress and its end."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import Object, condition, disrupted, end_condition, phase_of, waits
from ebbtide.placement import Profile
from ebbtide.text import several
from ebbtide.values import durations
from ebbtide.values.given_command import given_command
from ebbtide.work.errors import WorkloadError
from ebbtide.work.evidence import OBVIOUS, Actor, Cause, Evidence, is_gated
from ebbtide.work.logs import log_link, log_query, of_index
from ebbtide.work.pod_causes import missing_pods, pending_pod
from ebbtide.work.queue_causes import queue_cause
from ebbtide.work.sweeps import POINTS

_NEW: Final = Cause(
    reason="New",
    message="its pods have not been created yet",
    remedy="that takes seconds",
    actor=Actor.TIME,
)
_FIRST_WAIT: Final = 10
_LONGEST_WAIT: Final = 360
"""Seconds of the wait after failures of a Job, twice as long each time (Kubernetes docs, Job, pod backoff
failure policy)."""
VERSION: Final = "ebbtide.dev/job/v1"
"""Version of the document of `--format json`."""
_SHOWN: Final = 10
"""Maximum number of failed indexes in the list."""
_KILLED: Final = 137
_OUT_OF_MEMORY: Final = "it was killed, as for more memory than it has; request more (--memory)"


class Phase(StrEnum):
    """Phase of a Job."""

    QUEUED = "queued"
    WAITING = "waiting for a node"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a Job.

    Attributes:
        reason: the reason of the phase; empty if it is obvious.
        cause: the cause of its waiting; None if nothing waits.
        points: required completions; 1 for a plain Job.
        done: completions.
        failed: failed indexes of a sweep.
        waiting: pods without a node.
        retries: number of retried failures.
        disrupted: uids of pods that a disruption ended, including deleted ones.
    """

    phase: Phase
    reason: str = ""
    cause: Cause | None = None
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


def progress(evidence: Evidence, before: frozenset[str] = frozenset()) -> Progress:
    """Derive the progress of a workload that is not a pod.

    Args:
        before: pods that earlier evidence shows as disrupted. A pod is deleted with its node, and the Job
            counts no disruptions.
    """
    job = evidence.job
    spec, status = job["spec"], job.get("status", {})
    alive = [pod for pod in evidence.pods if "deletionTimestamp" not in pod["metadata"]]
    waiting = sum(map(waits, alive))
    running = sum(phase_of(pod) == "Running" for pod in alive)
    failed = len(indexes(status.get("failedIndexes") or ""))
    cause = cause_of(evidence)
    phase = _phase(job, evidence.pods, waiting, running)
    return Progress(
        phase=phase,
        reason=_reason(job, phase, cause, waiting),
        cause=cause,
        points=spec.get("completions") or 1,
        done=int(status.get("succeeded") or 0),
        failed=failed,
        running=running,
        waiting=waiting,
        retries=_retries(spec, status, failed, over=phase is Phase.FAILED),
        disrupted=before | {pod["metadata"]["uid"] for pod in evidence.pods if disrupted(pod)},
    )


def _phase(job: Object, pods: Sequence[Object], waiting: int, running: int) -> Phase:
    if end_condition(job):
        return Phase.COMPLETED if condition(job, "Complete") else Phase.FAILED
    if job["spec"].get("suspend"):
        return Phase.QUEUED
    if running or _succeeded(job, pods):
        return Phase.RUNNING
    return Phase.WAITING if waiting else Phase.STARTING


def _succeeded(job: Object, pods: Iterable[Object]) -> bool:
    """Return whether enough pods have succeeded: a Job is not complete yet then, and no longer starting."""
    return sum(phase_of(pod) == "Succeeded" for pod in pods) >= (job["spec"].get("completions") or 1)


def _reason(job: Object, phase: Phase, cause: Cause | None, waiting: int) -> str:
    if failure := condition(job, "Failed"):
        return failure.get("message") or failure.get("reason") or ""
    is_obvious = cause is None or cause.reason in OBVIOUS or (phase is Phase.RUNNING and not waiting)
    return "" if is_obvious or cause is None else cause.message


def _retry(job: Object) -> Cause:
    """Return the wait between two tries; each index of a Job has its own, of at most the longest."""
    failed = int(job.get("status", {}).get("failed") or 1)
    has_own = job["spec"].get("backoffLimitPerIndex") is not None
    wait = _LONGEST_WAIT if has_own else min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failed - 1, 9))
    return Cause(
        reason="Retry",
        message="its pods have ended, and its controller waits before the next try",
        remedy=f"the next pod is created within {durations.in_one_unit(wait)}",
        actor=Actor.TIME,
    )


def cause_of(evidence: Evidence) -> Cause | None:
    """Return why a workload, or a part of it, is waiting; None if nothing waits."""
    job, workload = evidence.job, evidence.workload
    if end_condition(job):
        return None
    if job and job["spec"].get("suspend"):
        return queue_cause(evidence)
    if workload is not None and not condition(workload, "Admitted") and any(map(is_gated, evidence.pods)):
        return queue_cause(evidence)
    alive = [pod for pod in evidence.pods if "deletionTimestamp" not in pod["metadata"]]
    pending = [pod for pod in alive if phase_of(pod) == "Pending"]
    if pending:
        # Those without a node explain it first.
        return pending_pod(evidence, min(pending, key=lambda pod: (not waits(pod), pod["metadata"]["name"])))
    phases = [phase_of(pod) for pod in alive]
    if "Running" in phases or not job or _succeeded(job, alive):
        return None
    is_between_tries = bool(phases) and set(phases) <= {"Succeeded", "Failed"}
    return missing_pods(evidence, job) or (_retry(job) if is_between_tries else _NEW)


def indexes(text: str) -> list[int]:
    """Return the indexes in a Job's notation, `1,3-5,7`, in order."""
    ranges = (part.partition("-") for part in text.split(",") if part)
    return [index for first, _, last in ranges for index in range(int(first), int(last or first) + 1)]


def _retries(spec: Object, status: Object, failed: int, *, over: bool) -> int:
    """Return the number of retried failures: all but the last of each index, or of the Job, that failed
    permanently. The Job's count excludes failures that a rule of the failure policy ignores."""
    last = failed if spec.get("backoffLimitPerIndex") is not None else int(over)
    return max(0, int(status.get("failed") or 0) - last)


def age_seconds(job: Object) -> int | None:
    """Return the time from a Job's creation to its end; None before its end."""
    end = end_condition(job)
    if not end:
        return None
    begun = datetime.fromisoformat(job["metadata"]["creationTimestamp"])
    return max(0, round((datetime.fromisoformat(end["lastTransitionTime"]) - begun).total_seconds()))


def progress_line(current: Progress) -> str:
    """Format the progress of a Job as a line."""
    return "; ".join(filter(None, (_state(current), _disruptions(current))))


def _state(current: Progress) -> str:
    match current.phase:
        case Phase.RUNNING if current.points > 1:
            parts = [f"running {current.running}, done {current.done} of {current.points}"]
            if current.failed:
                parts.append(f"failed {current.failed}")
            if current.waiting:
                parts.append(f"waiting for a node {current.waiting} ({current.reason})")
            return ", ".join(parts)
        case Phase.RUNNING:
            return "running"
        case Phase.QUEUED | Phase.WAITING | Phase.STARTING | Phase.FAILED | Phase.COMPLETED:
            done = f", done {current.done} of {current.points}" if current.points > 1 and current.done else ""
            return f"{current.phase}{done}" + (f": {current.reason}" if current.reason else "")


def _disruptions(current: Progress) -> str:
    """Return its retries and disruptions, if any."""
    lost = len(current.disrupted)
    parts = [f"{several(lost, 'disruption')} survived"] if lost else []
    if current.retries:
        parts.append(f"{several(current.retries, 'retry', 'retries')} used")
    return ", ".join(parts)


def end_message(evidence: Evidence, current: Progress, profile: Profile | None = None) -> str:
    """Format the end of a Job: result, duration, and the index, exit code and logs of failures.

    Args:
        evidence: the last objects.
        profile: the cluster's profile, for the logs.
    """
    name = f"{evidence.job.get('kind', 'Job')} {evidence.job['metadata']['name']}"
    length = age_seconds(evidence.job)
    took = "" if length is None else f" after {durations.elapsed(length)}"
    disruptions = _disruptions(current)
    if current.phase is Phase.COMPLETED:
        return f"{name} completed{took}" + (f"; {disruptions}" if disruptions else "") + "."
    why = f": {current.reason.rstrip('.')}" if current.reason else ""
    lines = [
        f"{name} failed{took}{why}." + (f" {disruptions[0].upper()}{disruptions[1:]}." if disruptions else "")
    ]
    return "\n".join([*lines, *_failures(evidence), *_logs(evidence, profile)])


def end_document(
    evidence: Evidence, namespace: str, current: Progress, profile: Profile | None = None
) -> dict[str, Any]:
    """Return the end of a Job as a document, with the facts of `end_message`.

    Args:
        evidence: the last objects.
        profile: the cluster's profile, for the logs.
    """
    is_failed = current.phase is Phase.FAILED
    return {
        "version": VERSION,
        "kind": evidence.job.get("kind", "Job"),
        "namespace": namespace,
        "name": evidence.job["metadata"]["name"],
        "phase": current.phase.value,
        "reason": current.reason,
        "seconds": age_seconds(evidence.job),
        "completions": current.done,
        "points": current.points,
        "failedPoints": current.failed,
        "retries": current.retries,
        "disruptions": len(current.disrupted),
        "failures": [line.strip() for line in _failures(evidence)] if is_failed else [],
        "logs": [line.strip() for line in _logs(evidence, profile)] if is_failed else [],
    }


def _failures(evidence: Evidence) -> list[str]:
    failed = indexes(evidence.job.get("status", {}).get("failedIndexes") or "")
    if evidence.job["spec"].get("completionMode") != "Indexed":
        pod = _last_failed(evidence.pods)
        return [f"  pod {pod['metadata']['name']}: {failure_text(pod)}"] if pod else []
    points = _points(evidence.job)
    lines: list[str] = []
    for index in failed[:_SHOWN]:
        pod = _last_failed(of_index(evidence.pods, index))
        point = f" {json.dumps(points[index], ensure_ascii=False)}" if index < len(points) else ""
        lines.append(f"  index {index}{point}: {failure_text(pod) if pod else 'its pods no longer exist'}")
    if len(failed) > _SHOWN:
        lines.append(f"  and {len(failed) - _SHOWN} more: {evidence.job['status']['failedIndexes']}")
    return lines


def failure_text(pod: Object) -> str:
    """Format the end of a failed pod: the exit code of its failed container, or the pod's reason."""
    status: Object = pod.get("status", {})
    for container in status.get("containerStatuses") or ():
        ended: Object = container["state"].get("terminated") or {}
        if ended.get("exitCode"):
            reason: str = ended.get("reason") or ""
            shown = f"exit code {ended['exitCode']}" + (f" ({reason})" if reason not in {"", "Error"} else "")
            return f"{shown}: {_OUT_OF_MEMORY}" if ended["exitCode"] == _KILLED else shown
    return ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "no reason is reported"


def _last_failed(pods: Sequence[Object]) -> Object | None:
    """Return the newest pod that failed of itself."""
    failed = [pod for pod in pods if phase_of(pod) == "Failed" and not disrupted(pod)]
    return max(failed, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)


def _points(job: Object) -> list[dict[str, Any]]:
    """Return the points of a sweep, by index; empty for another Indexed Job."""
    for container in job["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env") or ():
            if variable["name"] == POINTS:
                return json.loads(variable.get("value", "[]").replace("$$(", "$("))
    return []


def _logs(evidence: Evidence, profile: Profile | None) -> list[str]:
    metadata = evidence.job["metadata"]
    option, value = ("label", evidence.label) if evidence.label else ("job", metadata["name"])
    if profile is None:
        command = given_command().on_job("logs", "", metadata["namespace"], f"--{option}", value)
        return [f"Logs: `{command}`, with the cluster's profile."]
    try:
        query = log_query(profile, namespace=metadata["namespace"], **{option: value})
        link = log_link(profile, namespace=metadata["namespace"], **{option: value})
    except WorkloadError as error:  # the Job's end is reported all the same
        return [f"Logs: {error}"]
    return [f"Logs: {link}"] if link else ["Logs, by this query:", query]
