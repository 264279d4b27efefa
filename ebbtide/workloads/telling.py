"""Sentences about a Job's progress and its end."""

import json
from collections.abc import Sequence
from typing import Any, Final, assert_never

from ebbtide.invocation import command_line
from ebbtide.placement import Profile
from ebbtide.wording import several
from ebbtide.workloads.errors import WorkloadError
from ebbtide.workloads.following import (
    INDEX,
    Look,
    Phase,
    Progress,
    indexes,
    seconds_since_made,
)
from ebbtide.workloads.logs import log_link, log_query
from ebbtide.workloads.objects import Object, disrupted, phase_of
from ebbtide.workloads.sweeps import POINTS

_SHOWN: Final = 10
"""Maximum number of failed indexes that are listed."""
_MINUTE: Final = 60


def line(found: Progress) -> str:
    """Format the progress of a Job as a line."""
    return "; ".join(filter(None, (_state(found), _hardships(found))))


def _state(found: Progress) -> str:
    match found.phase:
        case Phase.RUNNING if found.points > 1:
            parts = [f"running {found.running}, done {found.done} of {found.points}"]
            if found.failed:
                parts.append(f"failed {found.failed}")
            if found.waiting:
                parts.append(f"waiting for a node {found.waiting} ({found.reason})")
            return ", ".join(parts)
        case Phase.RUNNING:
            return "running"
        case Phase.QUEUED | Phase.WAITING | Phase.STARTING | Phase.FAILED | Phase.COMPLETED:
            done = f", done {found.done} of {found.points}" if found.points > 1 and found.done else ""
            return f"{found.phase}{done}" + (f": {found.reason}" if found.reason else "")
        case _:
            assert_never(found.phase)


def _hardships(found: Progress) -> str:
    """Return its retries and disruptions, if any."""
    lost = len(found.disrupted)
    parts = [f"{several(lost, 'disruption')} survived"] if lost else []
    if found.retries:
        parts.append(f"{several(found.retries, 'retry', 'retries')} used")
    return ", ".join(parts)


def ending(look: Look, found: Progress, profile: Profile | None = None) -> str:
    """Format the end of a Job: result, duration, and of failures index, exit code and logs.

    Args:
        look: the last snapshot.
        found: its progress.
        profile: the cluster's profile, for the logs.
    """
    name = look.job["metadata"]["name"]
    length = seconds_since_made(look.job)
    took = "" if length is None else f" after {_minutes(length)}"
    through = _hardships(found)
    if found.phase is Phase.COMPLETED:
        return f"Job {name} completed{took}" + (f"; {through}" if through else "") + "."
    why = f": {found.reason.rstrip('.')}" if found.reason else ""
    lines = [f"Job {name} failed{took}{why}." + (f" {through[0].upper()}{through[1:]}." if through else "")]
    return "\n".join([*lines, *_failures(look), *_logs(look, profile)])


def _minutes(length: int) -> str:
    return f"{length} s" if length < _MINUTE else f"{length // _MINUTE} min {length % _MINUTE} s"


def _failures(look: Look) -> list[str]:
    failed = list(indexes(look.job.get("status", {}).get("failedIndexes") or ""))
    if look.job["spec"].get("completionMode") != "Indexed":
        pod = _last([pod for pod in look.pods if _failed(pod)])
        return [f"  pod {pod['metadata']['name']}: {how(pod)}"] if pod else []
    points = _points(look.job)
    lines: list[str] = []
    for index in failed[:_SHOWN]:
        pod = _last([pod for pod in look.pods if _index(pod) == str(index) and _failed(pod)])
        point = f" {json.dumps(points[index], ensure_ascii=False)}" if index < len(points) else ""
        lines.append(f"  index {index}{point}: {how(pod) if pod else 'its pods are gone'}")
    if len(failed) > _SHOWN:
        lines.append(f"  and {len(failed) - _SHOWN} more: {look.job['status']['failedIndexes']}")
    return lines


def how(pod: Object) -> str:
    """Format the end of a failed pod: the exit code of its failed container, or the pod's reason."""
    status: Object = pod.get("status", {})
    for container in status.get("containerStatuses") or ():
        ended: Object = container["state"].get("terminated") or {}
        if ended.get("exitCode"):
            reason: str = ended.get("reason") or ""
            return f"exit code {ended['exitCode']}" + (f" ({reason})" if reason not in {"", "Error"} else "")
    return ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "no reason is given"


def _failed(pod: Object) -> bool:
    return phase_of(pod) == "Failed" and not disrupted(pod)


def _index(pod: Object) -> str:
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    return annotations.get(INDEX, "")


def _last(pods: Sequence[Object]) -> Object | None:
    return max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)


def _points(job: Object) -> list[dict[str, Any]]:
    """The points of a sweep of ours, by index; none of another Indexed Job."""
    for container in job["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env") or ():
            if variable["name"] == POINTS:
                return json.loads(variable.get("value", "[]").replace("$$(", "$("))
    return []


def _logs(look: Look, profile: Profile | None) -> list[str]:
    metadata = look.job["metadata"]
    if profile is None:
        asked = command_line("logs", "--namespace", metadata["namespace"], "--job", metadata["name"])
        return [f"Logs: `{asked}`, with the cluster's profile."]
    try:
        query = log_query(profile, namespace=metadata["namespace"], job=metadata["name"])
        link = log_link(profile, namespace=metadata["namespace"], job=metadata["name"])
    except WorkloadError as error:  # how the Job ended is said all the same
        return [f"Logs: {error}"]
    return [f"Logs: {link}"] if link else ["Logs, by this query:", query]
