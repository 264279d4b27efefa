"""Messages about a Job's progress and its end."""

import json
from collections.abc import Sequence
from typing import Any, Final, assert_never

from ebbtide.placement import Profile
from ebbtide.text import command_line, several
from ebbtide.values import durations
from ebbtide.work.errors import WorkloadError
from ebbtide.work.job_progress import (
    INDEX,
    JobSnapshot,
    Phase,
    Progress,
    age_seconds,
    indexes,
)
from ebbtide.work.logs import log_link, log_query
from ebbtide.work.objects import Object, disrupted, phase_of
from ebbtide.work.sweeps import POINTS

VERSION: Final = "ebbtide.dev/job/v1"
"""Version of the document of `--format json`."""

_SHOWN: Final = 10
"""Maximum number of failed indexes in the list."""


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
        case _:
            assert_never(current.phase)


def _disruptions(current: Progress) -> str:
    """Return its retries and disruptions, if any."""
    lost = len(current.disrupted)
    parts = [f"{several(lost, 'disruption')} survived"] if lost else []
    if current.retries:
        parts.append(f"{several(current.retries, 'retry', 'retries')} used")
    return ", ".join(parts)


def end_message(snapshot: JobSnapshot, current: Progress, profile: Profile | None = None) -> str:
    """Format the end of a Job: result, duration, and the index, exit code and logs of failures.

    Args:
        snapshot: the last snapshot.
        current: its progress.
        profile: the cluster's profile, for the logs.
    """
    name = f"{snapshot.job.get('kind', 'Job')} {snapshot.job['metadata']['name']}"
    length = age_seconds(snapshot.job)
    took = "" if length is None else f" after {durations.elapsed(length)}"
    disruptions = _disruptions(current)
    if current.phase is Phase.COMPLETED:
        return f"{name} completed{took}" + (f"; {disruptions}" if disruptions else "") + "."
    why = f": {current.reason.rstrip('.')}" if current.reason else ""
    lines = [
        f"{name} failed{took}{why}." + (f" {disruptions[0].upper()}{disruptions[1:]}." if disruptions else "")
    ]
    return "\n".join([*lines, *_failures(snapshot), *_logs(snapshot, profile)])


def end_document(
    snapshot: JobSnapshot, namespace: str, current: Progress, profile: Profile | None = None
) -> dict[str, Any]:
    """Return the end of a Job as a document, with the facts of `end_message`.

    Args:
        snapshot: the last snapshot.
        namespace: the Job's namespace.
        current: its progress.
        profile: the cluster's profile, for the logs.
    """
    is_failed = current.phase is Phase.FAILED
    return {
        "version": VERSION,
        "kind": snapshot.job.get("kind", "Job"),
        "namespace": namespace,
        "name": snapshot.job["metadata"]["name"],
        "phase": current.phase.value,
        "reason": current.reason,
        "seconds": age_seconds(snapshot.job),
        "completions": current.done,
        "points": current.points,
        "failedPoints": current.failed,
        "retries": current.retries,
        "disruptions": len(current.disrupted),
        "failures": [line.strip() for line in _failures(snapshot)] if is_failed else [],
        "logs": [line.strip() for line in _logs(snapshot, profile)] if is_failed else [],
    }


def _failures(snapshot: JobSnapshot) -> list[str]:
    failed = list(indexes(snapshot.job.get("status", {}).get("failedIndexes") or ""))
    if snapshot.job["spec"].get("completionMode") != "Indexed":
        pod = _last([pod for pod in snapshot.pods if _failed(pod)])
        return [f"  pod {pod['metadata']['name']}: {failure_text(pod)}"] if pod else []
    points = _points(snapshot.job)
    lines: list[str] = []
    for index in failed[:_SHOWN]:
        pod = _last([pod for pod in snapshot.pods if _index(pod) == str(index) and _failed(pod)])
        point = f" {json.dumps(points[index], ensure_ascii=False)}" if index < len(points) else ""
        lines.append(f"  index {index}{point}: {failure_text(pod) if pod else 'its pods no longer exist'}")
    if len(failed) > _SHOWN:
        lines.append(f"  and {len(failed) - _SHOWN} more: {snapshot.job['status']['failedIndexes']}")
    return lines


def failure_text(pod: Object) -> str:
    """Format the end of a failed pod: the exit code of its failed container, or the pod's reason."""
    status: Object = pod.get("status", {})
    for container in status.get("containerStatuses") or ():
        ended: Object = container["state"].get("terminated") or {}
        if ended.get("exitCode"):
            reason: str = ended.get("reason") or ""
            return f"exit code {ended['exitCode']}" + (f" ({reason})" if reason not in {"", "Error"} else "")
    return ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "no reason is reported"


def _failed(pod: Object) -> bool:
    return phase_of(pod) == "Failed" and not disrupted(pod)


def _index(pod: Object) -> str:
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    return annotations.get(INDEX, "")


def _last(pods: Sequence[Object]) -> Object | None:
    return max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)


def _points(job: Object) -> list[dict[str, Any]]:
    """Return the points of a sweep, by index; empty for another Indexed Job."""
    for container in job["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env") or ():
            if variable["name"] == POINTS:
                return json.loads(variable.get("value", "[]").replace("$$(", "$("))
    return []


def _logs(snapshot: JobSnapshot, profile: Profile | None) -> list[str]:
    metadata = snapshot.job["metadata"]
    option, value = ("label", snapshot.label) if snapshot.label else ("job", metadata["name"])
    if profile is None:
        command = command_line("logs", "--namespace", metadata["namespace"], f"--{option}", value)
        return [f"Logs: `{command}`, with the cluster's profile."]
    try:
        query = log_query(profile, namespace=metadata["namespace"], **{option: value})
        link = log_link(profile, namespace=metadata["namespace"], **{option: value})
    except WorkloadError as error:  # the Job's end is reported all the same
        return [f"Logs: {error}"]
    return [f"Logs: {link}"] if link else ["Logs, by this query:", query]
