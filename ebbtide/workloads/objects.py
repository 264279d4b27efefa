"""Common queries of Kubernetes objects."""

from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]


def condition(item: Object | None, kind: str, status: str = "True") -> Object:
    """A condition of an object; an empty one where it has none."""
    found: Iterable[Object] = (item or {}).get("status", {}).get("conditions") or ()
    nothing: Object = {}
    return next((one for one in found if one["type"] == kind and one["status"] == status), nothing)


def phase_of(pod: Object) -> str:
    """A pod's phase; a new one has none written yet."""
    return str(pod.get("status", {}).get("phase") or "Pending")


def waits(pod: Object) -> bool:
    """Check that a pod has no node."""
    return phase_of(pod) == "Pending" and not pod["spec"].get("nodeName")


def disrupted(pod: Object) -> bool:
    """Check that a disruption ended a pod, or is ending it (Kubernetes docs, disruptions, pod disruption
    conditions)."""
    return bool(condition(pod, "DisruptionTarget"))
