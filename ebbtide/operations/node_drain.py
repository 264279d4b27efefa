"""Drain of the nodes of a replaced pool: cordon, wait for work, evict.

Pods that end by themselves (`restartPolicy` Never or OnFailure) have time to finish; services move at once.
The time of the cordon is on the nodes, so that an interrupted drain does not begin again.

Pods of a queue select the pool that Kueue has admitted them to, by its name in the cloud. Evicted alone, they
would be created again for the old pool and wait there for Kueue's timeout. Their Workload is deactivated and
reactivated instead: Kueue then admits it to the new pool (Kueue 0.19, `spec.active` of Workload).
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.parts import part, parts, text
from ebbtide.text import several
from ebbtide.values import clock
from ebbtide.values.kueue_api import API_PATH
from ebbtide.work.objects import condition

SINCE: Final = "ebbtide.dev/draining-since"
"""Annotation of a cordoned node: time of the cordon."""
REQUEUED: Final = "ebbtide.dev/requeued-from"
"""Annotation of a Workload that the drain of a pool has deactivated: the pool's name in the cloud."""
_WORKLOAD: Final = "kueue.x-k8s.io/workload"
"""Annotation of a pod: the Workload that it is admitted by (Kueue 0.19, `getPodSetsInfoFromStatus`)."""
_MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of a static pod, which the API server cannot evict (Kubernetes docs, static pods)."""
_OVER: Final = ("Succeeded", "Failed")
_DISRUPTION: Final = timedelta(hours=1)
"""Maximum time that PodDisruptionBudgets may delay an eviction, as in upgrades of GKE (GKE docs, node pool
upgrade strategies, 2026)."""
_STEP: Final = 2.0


@dataclass(frozen=True, slots=True)
class DrainedPool:
    """A pool to drain.

    Attributes:
        name: name in the declaration.
        label: key of the cloud's label for the nodes of a pool.
        value: name in the cloud.
        timeout: time for work to finish.
    """

    name: str
    label: str
    value: str
    timeout: timedelta

    @property
    def selector(self) -> str:
        """Label selector of its nodes."""
        return f"{self.label}={self.value}"


def nodes(api: Api, pool: DrainedPool) -> list[Object]:
    """List a pool's nodes.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    return api.items("/api/v1/nodes", labelSelector=pool.selector)


def drain(api: Api, pools: Sequence[DrainedPool], watch: Callable[[str], None]) -> None:
    """Drain pools until no pod is left, or until PodDisruptionBudgets have delayed it long enough.

    Args:
        api: the cluster.
        pools: the pools.
        watch: called with a description of what the drain waits for.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    waiting = list(pools)
    while waiting:
        waiting = [pool for pool in waiting if not _drained(api, pool, watch)]
        if waiting:
            time.sleep(_STEP)


def _drained(api: Api, pool: DrainedPool, watch: Callable[[str], None]) -> bool:
    """Take the next step of a drain; true if none remains."""
    members = nodes(api, pool)
    begun = min((_cordoned(api, node) for node in members), default=clock.now())
    end = begun + pool.timeout
    last = clock.now() >= end + _DISRUPTION
    requeued = _readmit(api, pool, at_once=last)
    names = {node["metadata"]["name"] for node in members}
    pods = [pod for pod in _pods(api) if _is_of(pod, pool, names) and _counts(pod)]
    if last or not (requeued or pods):
        return True
    late = clock.now() >= end
    running = {_workload(pod) for pod in pods if text(pod, "spec", "nodeName")}
    for pod in pods:
        if _terminates(pod):
            continue
        workload = _workload(pod)
        if text(pod, "spec", "restartPolicy") == "Always" or (late and not workload):
            _evict(api, pod)
        elif workload and workload not in requeued and (late or workload not in running):
            _deactivate(api, workload, pool)
    watch(_description(pool, pods, end, late=late))
    return False


def _description(pool: DrainedPool, pods: Sequence[Object], end: datetime, *, late: bool) -> str:
    names = ", ".join(_names(pods))
    until = "evicting" if late else f"they have until {end:%Y-%m-%d %H:%M} UTC"
    return f"pool {pool.name}: {several(len(pods), 'pod')} on its old nodes ({names}); {until}"


def _names(pods: Iterable[Object]) -> list[str]:
    """Return the first names of pods, with their namespaces."""
    names = sorted(f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}" for pod in pods)
    return [*names[:3], *(["…"] if len(names) > 3 else [])]  # noqa: PLR2004 - a line's worth


def _cordoned(api: Api, node: Object) -> datetime:
    """Cordon a node and return the time of its cordon."""
    annotated = text(node, "metadata", "annotations", SINCE)
    since = annotated or clock.now().isoformat(timespec="seconds")
    if not annotated or not part(node, "spec").get("unschedulable"):
        change = {"metadata": {"annotations": {SINCE: since}}, "spec": {"unschedulable": True}}
        _patch(api, f"/api/v1/nodes/{node['metadata']['name']}", change)
    return datetime.fromisoformat(since)


def _pods(api: Api) -> list[Object]:
    # From the API server's cache, as in `snapshot`.
    return api.items("/api/v1/pods", resourceVersion="0")


def _is_of(pod: Object, pool: DrainedPool, names: Collection[str]) -> bool:
    """Check that a pod is on one of a pool's nodes, or waits for one although they are cordoned."""
    if node := text(pod, "spec", "nodeName"):
        return node in names
    return bool(_workload(pod)) and part(pod, "spec", "nodeSelector").get(pool.label) == pool.value


def _workload(pod: Object) -> str:
    """Return the path of a pod's Workload; empty without Kueue."""
    name = text(pod, "metadata", "annotations", _WORKLOAD)
    return _path(text(pod, "metadata", "namespace"), name) if name else ""


def _path(namespace: str, name: str) -> str:
    return f"{API_PATH}/namespaces/{namespace}/workloads/{name}"


def _deactivate(api: Api, workload: str, pool: DrainedPool) -> None:
    """Have Kueue end the pods of a Workload; `_readmit` reactivates it."""
    change = {"metadata": {"annotations": {REQUEUED: pool.value}}, "spec": {"active": False}}
    _patch(api, workload, change)


def _readmit(api: Api, pool: DrainedPool, *, at_once: bool) -> set[str]:
    """Reactivate the Workloads that the drain of a pool has deactivated and whose pods have ended.

    Args:
        api: the cluster.
        pool: the pool.
        at_once: true to reactivate those with pods, too.

    Returns:
        The paths of all that were deactivated.
    """
    deactivated = {
        _path(item["metadata"]["namespace"], item["metadata"]["name"]): item
        for item in parts(api.find(f"{API_PATH}/workloads") or {}, "items")
        if text(item, "metadata", "annotations", REQUEUED) == pool.value
    }
    change = {"metadata": {"annotations": {REQUEUED: None}}, "spec": {"active": True}}
    for path, item in deactivated.items():
        if at_once or not condition(item, "QuotaReserved"):
            _patch(api, path, change)
    return set(deactivated)


def _patch(api: Api, path: str, change: Mapping[str, Any]) -> None:
    """Change an object, unless it has been deleted meanwhile."""
    try:
        api.patch(path, change)
    except ApiError as error:
        if not error.not_found:
            raise


def _counts(pod: Object) -> bool:
    """Return whether a pod has to leave its node. Pods of DaemonSets and static pods end with the node."""
    owners = parts(pod, "metadata", "ownerReferences")
    of_node = any(owner.get("kind") in ("DaemonSet", "Node") for owner in owners)
    mirror = bool(text(pod, "metadata", "annotations", _MIRROR))
    return not of_node and not mirror and text(pod, "status", "phase") not in _OVER


def _terminates(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _evict(api: Api, pod: Object) -> None:
    """Evict a pod, unless a PodDisruptionBudget currently forbids it, or another pod has its name by now
    (Kubernetes docs, API-initiated eviction)."""
    name, namespace = text(pod, "metadata", "name"), text(pod, "metadata", "namespace")
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": text(pod, "metadata", "uid")}},
    }
    try:
        api.create(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body)
    except ApiError as error:
        if not (error.not_found or error.conflict) and error.status != _TOO_MANY:
            raise


_TOO_MANY: Final = 429
