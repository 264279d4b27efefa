"""Replaced pools: their names in a stack's state, and the drain of the old one's nodes.

A replaced pool has a second component beside it, whose name ends in `.next`. Once its work has moved, the two
are renamed: the drained one ends in `.old`, which is not in the program, and the new one gets the plain name.
The state is written immediately, so that it always records where a replacement was interrupted.

A drain cordons the nodes, waits for work, and evicts the rest. Pods that end by themselves (`restartPolicy`
Never or OnFailure) have time to finish; services move at once. The time of the cordon is on the nodes, so
that an interrupted drain does not begin again.

Pods of a queue select the pool that Kueue has admitted them to, by its name in the cloud. Evicted alone, they
would be created again for the old pool and wait there for Kueue's timeout. Their Workload is deactivated and
reactivated instead: Kueue then admits it to the new pool (Kueue 0.19, `spec.active` of Workload).
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from ebbtide.analysis.recording.recording import Recording, Resource, urn_name
from ebbtide.analysis.recording.values import mapped
from ebbtide.analysis.review.build_review import POOL_NAMES, new_pools_beside
from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.objects import condition, part, parts, text
from ebbtide.declaration.model.labels_and_taints import AGENT_POOL, NODE_POOL
from ebbtide.declaration.project.configuration import SUFFIX
from ebbtide.text import several
from ebbtide.values import clock
from ebbtide.values.kueue_api import API_PATH

OLD: Final = ".old"
"""Suffix of the name of a drained pool."""
TIMEOUT: Final = timedelta(hours=24)
"""Default time for work to finish, without a declared `drainTimeout`: the longest drain timeout of AKS
(azure-aks-docs, upgrade-cluster, 2026)."""
_GKE, _AKS = "ebbtide:gke:NodePool", "ebbtide:aks:NodePool"
_LABELS: Final = {_GKE: NODE_POOL, _AKS: AGENT_POOL}
_HASH: Final = 4
_AKS_LONGEST: Final = 12  # characters (azure-aks-docs, create-node-pools, 2026)
_GKE_LONGEST: Final = 40  # characters (GKE docs, node pool names, 2026)
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
SINCE: Final = "ebbtide.dev/draining-since"
"""Annotation of a cordoned node: time of the cordon."""
REQUEUED: Final = "ebbtide.dev/requeued-from"
"""Annotation of a Workload that the drain of a pool has deactivated: the pool's name in the cloud."""
_WORKLOAD: Final = "kueue.x-k8s.io/workload"
"""Annotation of a pod: the Workload that it is admitted by (Kueue 0.19, `getPodSetsInfoFromStatus`)."""
_OVER: Final = ("Succeeded", "Failed")
_DISRUPTION: Final = timedelta(hours=1)
"""Maximum time that PodDisruptionBudgets may delay an eviction, as in upgrades of GKE (GKE docs, node pool
upgrade strategies, 2026)."""
_STEP: Final = 2.0
_TOO_MANY: Final = 429
_SHOWN: Final = 3


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


@dataclass(frozen=True, slots=True)
class StatePool:
    """A node pool in a stack's state.

    Attributes:
        resource_name: logical name of the component.
        resource: the provider's resource; None if it was not created.
    """

    resource_name: str
    component: Mapping[str, Any]
    resource: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """Name in the declaration."""
        return str(self.component["inputs"][POOL_NAMES[self.component["type"]]])

    @property
    def cloud_name(self) -> str:
        """Name in the cloud."""
        inputs: Mapping[str, Any] = (self.resource or self.component)["inputs"]
        return str(inputs[POOL_NAMES[self.component["type"]]])

    @property
    def is_ready(self) -> bool:
        """True if the cloud has created it without an error."""
        return self.resource is not None and not self.resource.get("initErrors")

    @property
    def count(self) -> int | None:
        """Fixed node count; None if the autoscaler sets it."""
        count = self.resource["inputs"].get("count") if self.resource else None
        return None if count is None else int(count)

    @property
    def urns(self) -> list[str]:
        """URNs of its resources."""
        return [str(item["urn"]) for item in (self.resource, self.component) if item is not None]

    def drained(self, timeout: timedelta) -> DrainedPool:
        """Return the pool as input of a drain."""
        return DrainedPool(self.name, _LABELS[self.component["type"]], self.cloud_name, timeout)


def pools_of(deployment: Mapping[str, Any]) -> dict[str, StatePool]:
    """Return the node pools of a state, by the logical name of their component."""
    resources = [item for item in deployment.get("resources") or () if not item.get("delete")]
    children = {item.get("parent"): item for item in resources if item.get("custom")}
    return {
        name: StatePool(name, item, children.get(item["urn"]))
        for item in resources
        if item["type"] in POOL_NAMES
        for name in [urn_name(str(item["urn"]))]
    }


def interrupted(deployment: Mapping[str, Any]) -> list[str]:
    """Return the names of pools whose replacement an earlier update has started."""
    return sorted({pool.name for name, pool in pools_of(deployment).items() if name.endswith((SUFFIX, OLD))})


def without_replacements(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without the resources of unfinished replacements."""
    extra = {
        urn
        for name, pool in pools_of(deployment).items()
        if name.endswith((SUFFIX, OLD))
        for urn in pool.urns
    }
    kept = [item for item in deployment.get("resources") or () if item["urn"] not in extra]
    return {**deployment, "resources": kept}


def refused(recording: Recording) -> dict[str, str]:
    """Return the work pools whose change a cloud rejects, with their URN, by the logical name of their
    component."""
    return {urn_name(message.urn): message.urn for message in new_pools_beside(recording) if message.urn}


def declared_name(component: Resource) -> str:
    """Return the name in the declaration of a recorded pool."""
    return str(component.inputs[POOL_NAMES[component.type]])


def timeout(recording: Recording, name: str, given: timedelta | None = None) -> timedelta:
    """Return the time for a pool's work to finish: the given one, or else that of the declaration."""
    if given is not None:
        return given
    component = next((item for item in recording if item.type in POOL_NAMES and item.name == name), None)
    seconds = component.inputs.get("drainTimeoutSeconds") if component else None
    return timedelta(seconds=float(seconds)) if isinstance(seconds, int | float) else TIMEOUT


def replacement_name(recording: Recording, name: str, taken: Collection[str]) -> str:
    """Return the name in the cloud of a pool's replacement, which depends only on its inputs.

    Args:
        name: logical name of the pool's component.
        taken: names in the cloud of other pools.
    """
    component = next(item for item in recording if item.type in POOL_NAMES and item.name == name)
    pool = str(component.inputs[POOL_NAMES[component.type]])
    text = json.dumps(dict(component.inputs), sort_keys=True, default=str)
    return next(candidate for candidate in _candidates(component.type, pool, text) if candidate not in taken)


def _candidates(type_: str, pool: str, inputs: str) -> Iterator[str]:
    number = 0
    while True:
        digest = hashlib.sha256(f"{pool} {number} {inputs}".encode()).digest()
        tail = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_HASH])
        if type_ == _AKS:
            yield pool[: _AKS_LONGEST - _HASH] + tail
        else:
            yield f"{pool[: _GKE_LONGEST - _HASH - 1].rstrip('-')}-{tail}"
        number += 1


def renamed(deployment: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a state with pools and all references to them renamed.

    Args:
        names: new logical names of components, by current name.
    """
    urns = {
        urn: f"{urn.rpartition('::')[0]}::{names[pool.resource_name]}"
        for pool in pools_of(deployment).values()
        if pool.resource_name in names
        for urn in pool.urns
    }
    state = mapped(dict(deployment), lambda leaf: urns.get(leaf, leaf) if isinstance(leaf, str) else leaf)
    return cast("dict[str, Any]", state)


def swapped(name: str) -> dict[str, str]:
    """Return the new names that swap a pool and its replacement."""
    return {name: f"{name}{SUFFIX}", f"{name}{SUFFIX}": name}


def withdrawn(name: str) -> dict[str, str]:
    """Return the new name of a drained replacement."""
    return {f"{name}{SUFFIX}": f"{name}{OLD}"}


def retired(name: str) -> dict[str, str]:
    """Return the new names after a drain."""
    return {name: f"{name}{OLD}", f"{name}{SUFFIX}": name}


def nodes(api: Api, pool: DrainedPool) -> list[Object]:
    """List a pool's nodes.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    return api.items("/api/v1/nodes", labelSelector=pool.selector)


def drain(api: Api, pools: Sequence[DrainedPool], watch: Callable[[str], None]) -> None:
    """Drain pools until no pod is left, or until PodDisruptionBudgets have delayed it long enough.

    Args:
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
    pods = [
        pod
        for pod in api.items("/api/v1/pods", resourceVersion="0")
        if _is_of(pod, pool, names) and _counts(pod)
    ]
    if last or not (requeued or pods):
        return True
    late = clock.now() >= end
    running = {_workload(pod) for pod in pods if text(pod, "spec", "nodeName")}
    for pod in pods:
        if bool(pod["metadata"].get("deletionTimestamp")):
            continue
        workload = _workload(pod)
        if text(pod, "spec", "restartPolicy") == "Always" or (late and not workload):
            _evict(api, pod)
        elif workload and workload not in requeued and (late or workload not in running):
            _deactivate(api, workload, pool)
    watch(_description(pool, pods, "evicting" if late else f"they have until {clock.in_utc(end)}"))
    return False


def _description(pool: DrainedPool, pods: Sequence[Object], until: str) -> str:
    names = sorted(f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}" for pod in pods)
    shown = ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
    return f"pool {pool.name}: {several(len(pods), 'pod')} on its old nodes ({shown}); {until}"


def _cordoned(api: Api, node: Object) -> datetime:
    """Cordon a node and return the time of its cordon."""
    annotated = text(node, "metadata", "annotations", SINCE)
    since = annotated or clock.now().isoformat(timespec="seconds")
    if not annotated or not part(node, "spec").get("unschedulable"):
        change = {"metadata": {"annotations": {SINCE: since}}, "spec": {"unschedulable": True}}
        _patch(api, f"/api/v1/nodes/{node['metadata']['name']}", change)
    return datetime.fromisoformat(since)


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
    """Return whether a pod has to leave its node. Pods of DaemonSets end with it, and so do static pods, of
    which it is the owner (kubernetes, pkg/kubelet/pod/mirror_client.go, CreateMirrorPod)."""
    owners = parts(pod, "metadata", "ownerReferences")
    of_node = any(owner.get("kind") in ("DaemonSet", "Node") for owner in owners)
    return not of_node and text(pod, "status", "phase") not in _OVER


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
