"""What is free on a cluster's nodes, and what of it is kept for ProvisioningRequests."""

from collections.abc import Iterator

from ebbtide_rehearsal.cloud.nodes.cluster import Request, Seen
from ebbtide_rehearsal.cloud.nodes.fitting import Room, largest_first, place
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.templates import NOT_READY, UNINITIALIZED, room
from ebbtide_rehearsal.cloud.nodes.verdicts import ATOMIC, CHECK, QUEUED
from ebbtide_rehearsal.cloud.pools import NodePool


def rooms(seen: Seen) -> list[Room]:
    """What is free on the nodes that pods may still come to, those that are on their way among them."""
    found: list[Room] = []
    for machine in seen.machines:
        pool, node = seen.pool(machine), seen.nodes.get(machine.name)
        if pool is None or machine.leaves or machine.state == "stopped":
            continue
        if node is None or machine.state == "starting" or not _complete(seen, pool, machine.name):
            found.append(room(pool, machine.zone, seen.daemons))
        elif node.open:
            found.append(node.room(seen.on(node.name)))
    return found


def unbooked(seen: Seen) -> list[Room]:
    """The same without what is kept for requests whose pods are yet to come."""
    return place(largest_first(_booked_pods(seen)), rooms(seen))[0]


def booked(seen: Seen) -> frozenset[str]:
    """Nodes that are kept for the pods of their request, though none may be there yet."""
    queued = {
        request.id
        for request in seen.requests
        if request.kind == QUEUED and not request.conditions & {"BookingExpired", "Failed", "CapacityRevoked"}
    }
    brought = {machine.name for machine in seen.machines if machine.request in queued}
    there = zip(rooms(seen), unbooked(seen), strict=True)
    return frozenset(brought | {before.name for before, after in there if before.free != after.free})


def _booked_pods(seen: Seen) -> Iterator[Pod]:
    """What the cluster autoscaler puts onto nodes in its mind: the pods of each provisioned request, for ten
    minutes, or until all of them are there (kubernetes/autoscaler, processors/provreq/processor.go, 2026).
    What GKE queues has nodes of its own."""
    for request in seen.requests:
        kept = "Provisioned" in request.conditions and not request.conditions & {"BookingExpired", "Failed"}
        if request.kind in (ATOMIC, CHECK) and kept and _there(request, seen) < len(request.pods):
            yield from request.pods


def _there(request: Request, seen: Seen) -> int:
    return sum(bool(pod.node) and f"{pod.namespace}/{pod.request}" == request.id for pod in seen.pods)


def _complete(seen: Seen, pool: NodePool, name: str) -> bool:
    """Whether a node has become what its pool promises."""
    node = seen.nodes[name]
    shown = not pool.accelerator or pool.accelerator_resource in node.allocatable
    young = any(taint.key in (UNINITIALIZED, NOT_READY) for taint in node.taints)
    return shown and not young and (node.ready or node.cordoned)
