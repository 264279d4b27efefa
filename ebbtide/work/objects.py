"""Common queries of Kubernetes objects."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Object = dict[str, Any]

_COMBINED: Final = "(combined from similar events): "
"""Prefix of the message of an event that stands for all after the tenth similar one (client-go 0.36,
tools/record/events_cache.go)."""


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
