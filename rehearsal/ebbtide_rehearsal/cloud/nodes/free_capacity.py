"""Free capacity of a cluster's nodes, and the part booked for ProvisioningRequests."""

from collections.abc import Iterator

from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot, ProvisioningRequest
from ebbtide_rehearsal.cloud.nodes.decisions import ATOMIC, CHECK, QUEUED
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.scheduling import NodeInfo, largest_first, schedule
from ebbtide_rehearsal.cloud.nodes.templates import NOT_READY, UNINITIALIZED, node_info
from ebbtide_rehearsal.cloud.pools import NodePool


def node_infos(snapshot: ClusterSnapshot) -> list[NodeInfo]:
    """Return the existing and ordered nodes that accept pods, with their free capacity."""
    nodes: list[NodeInfo] = []
    for machine in snapshot.machines:
        pool, node = snapshot.pool(machine), snapshot.nodes.get(machine.name)
        if pool is None or machine.is_leaving or machine.state == "stopped":
            continue
        if node is None or machine.state == "starting" or not _complete(snapshot, pool, machine.name):
            nodes.append(node_info(pool, machine.zone, snapshot.daemons))
        elif node.is_schedulable:
            nodes.append(node.node_info(snapshot.on(node.name)))
    return nodes


def unbooked(snapshot: ClusterSnapshot) -> list[NodeInfo]:
    """Return the nodes without the capacity booked for pods of requests."""
    return schedule(largest_first(_booked_pods(snapshot)), node_infos(snapshot))[0]


def booked(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the names of nodes that are booked for the pods of a request."""
    queued = {
        request.id
        for request in snapshot.requests
        if request.kind == QUEUED and not request.conditions & {"BookingExpired", "Failed", "CapacityRevoked"}
    }
    brought = {machine.name for machine in snapshot.machines if machine.request in queued}
    nodes = zip(node_infos(snapshot), unbooked(snapshot), strict=True)
    return frozenset(brought | {before.name for before, after in nodes if before.free != after.free})


def _booked_pods(snapshot: ClusterSnapshot) -> Iterator[Pod]:
    """Return the pods of provisioned requests that the cluster autoscaler keeps capacity for: for ten
    minutes, or until all of them exist (kubernetes/autoscaler, processors/provreq/processor.go, 2026). GKE's
    queued requests have separate nodes."""
    for request in snapshot.requests:
        booked = "Provisioned" in request.conditions and not request.conditions & {"BookingExpired", "Failed"}
        if (
            request.kind in (ATOMIC, CHECK)
            and booked
            and _running_pods(request, snapshot) < len(request.pods)
        ):
            yield from request.pods


def _running_pods(request: ProvisioningRequest, snapshot: ClusterSnapshot) -> int:
    return sum(bool(pod.node) and f"{pod.namespace}/{pod.request}" == request.id for pod in snapshot.pods)


def _complete(snapshot: ClusterSnapshot, pool: NodePool, name: str) -> bool:
    """Return whether a node has its accelerators and no startup taint."""
    node = snapshot.nodes[name]
    shown = not pool.accelerator or pool.accelerator_resource in node.allocatable
    young = any(taint.key in (UNINITIALIZED, NOT_READY) for taint in node.taints)
    return shown and not young and (node.ready or node.cordoned)
