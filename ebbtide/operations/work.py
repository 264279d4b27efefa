"""Work on a cluster whose pools and queues are to be deleted, from a snapshot of its objects.

Work is every object that users created: a Job, a TrainJob, a Deployment, a bare pod, and pending workloads of
a queue. Objects of the cloud or of the stack itself are excluded.

Kueue keeps a ClusterQueue while workloads reserve its quota (finalizer `kueue.x-k8s.io/resource-in-use`), and
the engine would wait in vain for its deletion. So queues are drained first (stop policy HoldAndDrain): their
pods end within the grace period, and a Job in another namespace remains, to be queued elsewhere.

Every function that takes the cluster raises `ApiError` if its API server does not answer or denies access.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.objects import condition, items_of, part, parts, text
from ebbtide.declaration.model.cluster import reserved_owner
from ebbtide.operations.engine.state import ObjectReference, State
from ebbtide.placement import Profile
from ebbtide.text import several
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import API_PATH, CLUSTER_QUEUES

_CONTROLLERS: Final = {
    "Job": "/apis/batch/v1/jobs",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "TrainJob": "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
}
"""Kinds of controllers between a pod and the object that the user created."""

_WORKLOADS: Final = f"{API_PATH}/workloads"
_DRAIN: Final = 600.0  # seconds; pods may have a long grace period
_DRAIN_STEP: Final = 1.0
_OVER: Final = frozenset({"Succeeded", "Failed"})
_ENDED: Final = frozenset({"Complete", "Completed", "Failed", "Finished"})
_WAIT_FOR_KUEUE: Final = ("Job", "JobSet", "TrainJob")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects of a cluster.

    Attributes:
        controllers: controllers, by kind.
        workloads: Kueue's Workloads.
    """

    nodes: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    controllers: Mapping[str, tuple[Object, ...]] = field(default_factory=dict[str, tuple[Object, ...]])
    workloads: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()


def take_snapshot(api: Api) -> Snapshot:
    """Take a snapshot. A kind that is not installed has no objects."""
    return Snapshot(
        nodes=_listed(api, "/api/v1/nodes"),
        pods=_listed(api, "/api/v1/pods"),
        controllers={kind: _listed(api, path) for kind, path in _CONTROLLERS.items()},
        workloads=_listed(api, _WORKLOADS),
        volumes=list_volumes(api),
    )


def list_volumes(api: Api) -> tuple[Object, ...]:
    """List the PersistentVolumes."""
    return _listed(api, "/api/v1/persistentvolumes")


def _listed(api: Api, path: str) -> tuple[Object, ...]:
    # From the API server's cache (resourceVersion 0), which avoids a read of all pods from etcd.
    return tuple(items_of(api.find(path, resourceVersion="0")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A user's workload.

    Attributes:
        kind: kind, such as `Job`.
        since: its creation time.
        pods: number of its pods that have not terminated.
        pools: names of the pools of those pods.
        queue: local queue in which it is pending; empty if it is not.
    """

    kind: str
    namespace: str
    name: str
    since: datetime
    pods: int = 0
    pools: tuple[str, ...] = ()
    queue: str = ""


def work(snapshot: Snapshot, profile: Profile, state: State) -> list[Work]:
    """Return the work that ends with a stack, oldest first: on its pools, in its namespaces and in its
    queues, or all work if the cluster is deleted.
    """
    queues = {(local.namespace, local.name) for queue in profile.queues for local in queue.local_queues}
    teams = {namespace for namespace, _ in queues} | state.teams
    addons = state.namespaces - teams
    pool_of = pools_of_nodes(snapshot.nodes, profile)
    owners = roots(snapshot)
    top: dict[ObjectReference, Object] = {}
    pods: dict[ObjectReference, list[Object]] = {}

    def is_deleted(namespace: str) -> bool:
        return state.owns_cluster or namespace in state.namespaces

    def is_users(item: ObjectReference) -> bool:
        is_ours = item in state.objects or item.namespace in addons
        return not is_ours and reserved_owner(item.namespace) is None

    for pod in snapshot.pods:
        pool = pool_of.get(_node(pod))
        if not _runs(pod) or not (pool or is_deleted(_namespace(pod))):
            continue
        item, root = _root("Pod", pod, owners)
        if is_users(item) and item.kind not in {"DaemonSet", "Node"}:
            top.setdefault(item, root)
            pods.setdefault(item, []).append(pod)
    waiting = dict(_pending(snapshot.workloads, owners))
    for kind in _WAIT_FOR_KUEUE:
        for obj in snapshot.controllers.get(kind, ()):
            item, root = _root(kind, obj, owners)
            queued = (item.namespace, waiting.get(item, "")) in queues
            if not _ended(obj) and is_users(item) and (queued or is_deleted(item.namespace)):
                top.setdefault(item, root)
    running = [
        Work(
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            since=datetime.fromisoformat(root["metadata"]["creationTimestamp"]),
            pods=len(pods.get(item, ())),
            pools=tuple(sorted({name for pod in pods.get(item, ()) if (name := pool_of.get(_node(pod)))})),
            queue="" if pods.get(item) else waiting.get(item, ""),
        )
        for item, root in top.items()
    ]
    return sorted(running, key=lambda obj: (obj.since, obj.namespace, obj.name))


def roots(snapshot: Snapshot) -> dict[str, tuple[str, Object]]:
    """Map the uids of a cluster's controllers to their kind and object."""
    return {
        obj["metadata"]["uid"]: (kind, obj)
        for kind, objects in snapshot.controllers.items()
        for obj in objects
    }


def root_of(kind: str, obj: Object, owners: Mapping[str, tuple[str, Object]]) -> ObjectReference:
    """Return the top owner of an object.

    Args:
        owners: the cluster's controllers, as from `roots`.
    """
    return _root(kind, obj, owners)[0]


def pools_of_nodes(nodes: Iterable[Object], profile: Profile) -> dict[str, str]:
    """Map each node to its pool, without pools of other stacks."""
    pools: dict[str, str] = {}
    for node in nodes:
        labels = part(node, "metadata", "labels").items()
        pool = next((pool.name for pool in profile.pools if pool.labels.items() <= labels), None)
        if pool:
            pools[node["metadata"]["name"]] = pool
    return pools


def _node(pod: Object) -> str:
    return text(pod, "spec", "nodeName")


def _runs(pod: Object) -> bool:
    """Return whether a pod has not terminated. Pods with a system priority belong to the cluster (Kubernetes
    docs, guaranteed scheduling for critical add-on pods).
    """
    critical = text(pod, "spec", "priorityClassName").startswith("system-")
    return text(pod, "status", "phase") not in _OVER and not critical


def _root(kind: str, obj: Object, owners: Mapping[str, tuple[str, Object]]) -> tuple[ObjectReference, Object]:
    """Return the top owner of an object, and the object that determines its age."""
    while True:
        owners_ = parts(obj, "metadata", "ownerReferences")
        owner = next((owner for owner in owners_ if owner.get("controller")), None)
        if owner is None:
            return ObjectReference(kind, _namespace(obj), obj["metadata"]["name"]), obj
        if owner["uid"] not in owners:
            return ObjectReference(owner["kind"], _namespace(obj), owner["name"]), obj
        kind, obj = owners[owner["uid"]]


def _pending(
    workloads: Iterable[Object], owners: Mapping[str, tuple[str, Object]]
) -> Iterator[tuple[ObjectReference, str]]:
    """Map each workload that Kueue has not admitted to its queue."""
    for workload in workloads:
        if not condition(workload, "Admitted") and not _ended(workload):
            item, _ = _root("Workload", workload, owners)
            yield item, text(workload, "spec", "queueName")


def _ended(obj: Object) -> bool:
    return any(condition(obj, kind) for kind in _ENDED)


def _namespace(obj: Object) -> str:
    return text(obj, "metadata", "namespace")


def reserving(api: Api, names: frozenset[str]) -> int:
    """Return the number of workloads that reserve quota of the queues."""
    return sum(
        text(item, "status", "admission", "clusterQueue") in names
        and bool(condition(item, "QuotaReserved"))
        and not condition(item, "Finished")
        for item in items_of(api.find(_WORKLOADS))
    )


def queues(state: State) -> frozenset[str]:
    """Return the ClusterQueues to stop before a destroy: none if the cluster itself is deleted."""
    return frozenset() if state.owns_cluster else state.queues


def drain_and_report(api: Api, names: frozenset[str], report: Callable[[str], None]) -> None:
    """Drain queues that are to be deleted, as far as the cluster answers.

    Args:
        report: prints a line.
    """
    report(
        f"Before their deletion, the queues {', '.join(sorted(names))} are drained; pods end within their "
        "grace period."
    )
    try:
        remaining = drain_until_free(api, names)
    except ApiError as error:
        report(f"The queues cannot be drained, and the engine may time out deleting them: {error}")
        return
    if remaining:
        report(f"{several(remaining, 'piece')} of work still reserve quota; the engine waits for them.")


def drain_until_free(api: Api, names: frozenset[str]) -> int:
    """Stop queues and wait until no workload reserves their quota.

    Returns:
        The number of workloads that still reserve quota after ten minutes.
    """
    for name in sorted(names):
        path = f"{CLUSTER_QUEUES}/{name}"
        if api.find(path) is not None:
            given_command().happens(
                f"queue {name} is drained; to admit work again, set its `stopPolicy: None` with kubectl edit"
            )
            api.patch(path, {"spec": {"stopPolicy": "HoldAndDrain"}})
    end = time.monotonic() + _DRAIN
    while (remaining := reserving(api, names)) and time.monotonic() < end:
        time.sleep(_DRAIN_STEP)
    return remaining
