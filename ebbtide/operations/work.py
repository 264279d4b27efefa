"""Work on a cluster whose pools and queues are to be deleted.

Work is every object that users created: a Job, a TrainJob, a Deployment, a bare pod, and pending workloads of
a queue. Objects of the cloud or of the stack itself are excluded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ebbtide.kubernetes_api import Object
from ebbtide.kubernetes_api.parts import part, parts, text
from ebbtide.operations.looking import Look
from ebbtide.operations.state import Item, State
from ebbtide.placement import Profile

_CLOUDS_OWN: Final = ("kube-", "gke-", "gmp-", "aks-", "azure-", "calico-", "tigera-", "gatekeeper-")
"""Prefixes of namespaces reserved by Kubernetes, GKE and AKS (GKE docs, system namespaces; AKS docs, support
policies; 2026).
"""
_OVER: Final = frozenset({"Succeeded", "Failed"})
_ENDED: Final = frozenset({"Complete", "Completed", "Failed", "Finished"})
_WAIT_FOR_KUEUE: Final = ("Job", "JobSet", "TrainJob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A user's workload.

    Attributes:
        kind: such as `Job`.
        namespace: its namespace.
        name: its name.
        since: its creation time.
        pods: the number of its pods that have not terminated.
        pools: the pools of those pods, by name.
        queue: the local queue in which it is pending; empty if it is not.
    """

    kind: str
    namespace: str
    name: str
    since: datetime
    pods: int = 0
    pools: tuple[str, ...] = ()
    queue: str = ""


def work(look: Look, profile: Profile, state: State) -> list[Work]:
    """Return the work that ends with a stack, oldest first: on its pools, in its namespaces and in its
    queues; all work if the cluster is deleted.

    Args:
        look: the cluster's snapshot.
        profile: the stack's profile.
        state: the stack's state.
    """
    queues = {(local.namespace, local.name) for queue in profile.queues for local in queue.local_queues}
    teams = {namespace for namespace, _ in queues} | state.teams
    addons = state.namespaces - teams
    pool_of = _pools(look.nodes, profile)
    owners = {one["metadata"]["uid"]: (kind, one) for kind, many in look.makers.items() for one in many}
    roots: dict[Item, Object] = {}
    pods: dict[Item, list[Object]] = {}

    def goes(namespace: str) -> bool:
        return state.owns_cluster or namespace in state.namespaces

    def counts(item: Item) -> bool:
        return item not in state.objects and item.namespace not in addons and not _is_clouds(item.namespace)

    for pod in look.pods:
        pool = pool_of.get(text(pod, "spec", "nodeName"))
        if not _runs(pod) or not (pool or goes(_place(pod))):
            continue
        item, root = _root("Pod", pod, owners)
        if counts(item) and item.kind not in {"DaemonSet", "Node"}:
            roots.setdefault(item, root)
            pods.setdefault(item, []).append(pod)
    waiting = dict(_waiting(look.workloads, owners))
    for kind in _WAIT_FOR_KUEUE:
        for one in look.makers.get(kind, ()):
            item, root = _root(kind, one, owners)
            queued = (item.namespace, waiting.get(item, "")) in queues
            if not _ended(one) and counts(item) and (queued or goes(item.namespace)):
                roots.setdefault(item, root)
    found = [
        Work(
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            since=datetime.fromisoformat(root["metadata"]["creationTimestamp"]),
            pods=len(pods.get(item, ())),
            pools=tuple(sorted({name for pod in pods.get(item, ()) if (name := _on(pod, pool_of))})),
            queue="" if pods.get(item) else waiting.get(item, ""),
        )
        for item, root in roots.items()
    ]
    return sorted(found, key=lambda one: (one.since, one.namespace, one.name))


def _pools(nodes: Iterable[Object], profile: Profile) -> dict[str, str]:
    """Map each node to its pool, without pools of other owners."""
    found: dict[str, str] = {}
    for node in nodes:
        labels = part(node, "metadata", "labels").items()
        pool = next((pool.name for pool in profile.pools if pool.labels.items() <= labels), None)
        if pool:
            found[node["metadata"]["name"]] = pool
    return found


def _on(pod: Object, pool_of: Mapping[str, str]) -> str:
    return pool_of.get(text(pod, "spec", "nodeName"), "")


def _runs(pod: Object) -> bool:
    """Check that a pod has not terminated. Pods with a system priority belong to the cluster (Kubernetes
    docs, guaranteed scheduling for critical add-on pods).
    """
    critical = text(pod, "spec", "priorityClassName").startswith("system-")
    return text(pod, "status", "phase") not in _OVER and not critical


def _root(kind: str, one: Object, owners: Mapping[str, tuple[str, Object]]) -> tuple[Item, Object]:
    """Return the top owner of an object, and the object that determines its age."""
    while True:
        owner = _controller(one)
        if owner is None:
            return Item(kind, _place(one), one["metadata"]["name"]), one
        if owner["uid"] not in owners:
            return Item(owner["kind"], _place(one), owner["name"]), one
        kind, one = owners[owner["uid"]]


def _controller(one: Object) -> Mapping[str, Any] | None:
    owners = parts(one, "metadata", "ownerReferences")
    return next((owner for owner in owners if owner.get("controller")), None)


def _waiting(
    workloads: Iterable[Object], owners: Mapping[str, tuple[str, Object]]
) -> Iterator[tuple[Item, str]]:
    """Map each workload that Kueue has not admitted to its queue."""
    for one in workloads:
        if not _is(one, "Admitted") and not _ended(one):
            item, _ = _root("Workload", one, owners)
            yield item, text(one, "spec", "queueName")


def _ended(one: Object) -> bool:
    return any(_is(one, kind) for kind in _ENDED)


def _is(one: Object, kind: str) -> bool:
    conditions = parts(one, "status", "conditions")
    return any(found["type"] == kind and found["status"] == "True" for found in conditions)


def _place(one: Object) -> str:
    return text(one, "metadata", "namespace")


def _is_clouds(namespace: str) -> bool:
    return namespace.startswith(_CLOUDS_OWN)
