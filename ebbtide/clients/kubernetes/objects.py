"""Parts of Kubernetes objects, which may be missing or of another type; and common queries of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from ebbtide.values.paths import Object

_COMBINED: Final = "(combined from similar events): "
"""Prefix of the message of an event that stands for all after the tenth similar one (client-go 0.36,
tools/record/events_cache.go)."""


def part(raw: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a nested object; empty if missing or null."""
    for key in path:
        raw = cast("Mapping[str, Any]", raw.get(key) or {})
    return raw


def parts(raw: Mapping[str, Any], *path: str) -> Sequence[Mapping[str, Any]]:
    """Return a nested list; empty if missing or null."""
    return cast("Sequence[Mapping[str, Any]]", part(raw, *path[:-1]).get(path[-1]) or ())


def text(raw: Mapping[str, Any], *path: str) -> str:
    """Return a nested string; empty if missing or null."""
    return str(part(raw, *path[:-1]).get(path[-1]) or "")


def items_of(listed: Mapping[str, Any] | None) -> list[Object]:
    """Return the objects of a list; none of a kind that is not installed, whose list does not exist."""
    return cast("list[Object]", (listed or {}).get("items") or [])


def words(raw: Mapping[str, Any], *path: str) -> Sequence[str]:
    """Return a nested list of strings; empty if missing or null."""
    return [str(word) for word in parts(raw, *path)]


def condition(item: Mapping[str, Any] | None, kind: str, status: str = "True") -> Object:
    """Return a condition of an object; empty if it has none."""
    conditions: Iterable[Object] = (item or {}).get("status", {}).get("conditions") or ()
    nothing: Object = {}
    return next(
        (entry for entry in conditions if entry["type"] == kind and entry["status"] == status), nothing
    )


def phase_of(pod: Object) -> str:
    """Return a pod's phase; empty if it has none yet."""
    return str(pod.get("status", {}).get("phase") or "Pending")


def waits(pod: Object) -> bool:
    """Check that a pod has no node."""
    return phase_of(pod) == "Pending" and not pod["spec"].get("nodeName")


def disrupted(pod: Object) -> bool:
    """Check that a disruption ended a pod, or is terminating it (Kubernetes docs, disruptions, pod disruption
    conditions)."""
    return bool(condition(pod, "DisruptionTarget"))


def message_of(event: Mapping[str, Any]) -> str:
    """Return an event's message; of a combined event that of the last one."""
    return str(event.get("message") or "").removeprefix(_COMBINED).strip()


def end_condition(job: Mapping[str, Any]) -> Object:
    """Return the condition that ended a Job, `Complete` or `Failed`; empty before."""
    return condition(job, "Complete") or condition(job, "Failed")
