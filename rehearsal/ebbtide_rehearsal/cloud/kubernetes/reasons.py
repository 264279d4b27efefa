"""Why an object is not as it should be, or does not go away."""

from collections.abc import Iterator

from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind
from ebbtide_rehearsal.cloud.kubernetes.objects import (
    MISSING,
    Object,
    at,
    metadata,
    name_of,
    namespace_of,
    objects_at,
)
from ebbtide_rehearsal.cloud.kubernetes.readiness import condition


def why(cluster: Cluster, live: Object, missing: str) -> str:
    """What is missing when the time is over, and what was said of the object and its pods."""
    said = [*cluster.warnings(live)[-1:], *_pod_troubles(cluster, live)]
    return "; ".join(["timed out: " + missing, *dict.fromkeys(said)])


def _pod_troubles(cluster: Cluster, live: Object) -> Iterator[str]:
    """What is the matter with the first of an object's pods that is not ready."""
    labels = at(live, "spec", "selector", "matchLabels")
    if labels is MISSING or not labels:
        return
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    path = cluster.discovery.find(Kind("", "v1", "Pod")).path(namespace_of(live))
    pods = cluster.api.items(path, labelSelector=selector)
    late = next((pod for pod in pods if condition(pod, "Ready").get("status") != "True"), None)
    if late is None:
        return
    for found in (condition(late, "PodScheduled"), condition(late, "Ready")):
        if found.get("status") != "True" and found.get("message"):
            yield f"pod {name_of(late)}: [{found.get('reason')}] {found['message']}"
    for status in objects_at(late, "status", "containerStatuses"):
        reason, message = (at(status, "state", "waiting", field) for field in ("reason", "message"))
        if reason is not MISSING:
            told = "" if message is MISSING else f" {message}"
            yield f"pod {name_of(late)}, container {status.get('name')}: [{reason}]{told}"


def held_by(live: Object) -> str:
    """What an object that is to go is waiting for."""
    finalizers: list[str] = metadata(live).get("finalizers") or []
    said = [f"finalizers might be preventing deletion ({', '.join(finalizers)})"] if finalizers else []
    if live["kind"] == "Namespace":
        conditions = objects_at(live, "status", "conditions")
        said += [str(item.get("message")) for item in conditions if item.get("status") == "True"]
    return "; ".join(said) or "nothing says why"
