"""Which node pools get new nodes for pods that the scheduler found no node for (kubernetes/autoscaler, FAQ,
"How does scale-up work?", 2026)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ebbtide.rehearsal.cloud.nodes.cluster import Seen
from ebbtide.rehearsal.cloud.nodes.fitting import Room, largest_first, obstacle, pack, place
from ebbtide.rehearsal.cloud.nodes.machines import counted
from ebbtide.rehearsal.cloud.nodes.pods import Pod
from ebbtide.rehearsal.cloud.nodes.preferences import COMPUTE_CLASS, Option, best, waste
from ebbtide.rehearsal.cloud.nodes.templates import NOT_READY, UNINITIALIZED, room
from ebbtide.rehearsal.cloud.pools import NodePool

BACKED_OFF = "in backoff after failed scale-up"
FULL = "max node group size reached"

_LEAST_PRIORITY = -10
"""Pods below it never bring a node (`expendable-pods-priority-cutoff`)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A new node that a pool could get in a zone.

    Attributes:
        pool: the pool.
        zone: where.
        room: the node.
        left: how many more nodes the pool may have.
        there: how many it has in the zone.
        closed: why it can get none now, in the autoscaler's words; empty when it can.
    """

    pool: NodePool
    zone: str
    room: Room
    left: int
    there: int
    closed: str


@dataclass(frozen=True, slots=True)
class Growth:
    """Nodes that a pool is to get.

    Attributes:
        pool: the pool.
        zones: where each of them goes.
        pods: the pods that they are for.
        before: how many nodes the pool has.
    """

    pool: NodePool
    zones: tuple[str, ...]
    pods: tuple[Pod, ...]
    before: int

    @property
    def message(self) -> str:
        """What the autoscaler tells the pods."""
        after = self.before + len(self.zones)
        sizes = f"{self.before}->{after} (max: {self.pool.maximum})"
        return f"pod triggered scale-up: [{{{self.pool.name} {sizes}}}]"


@dataclass(frozen=True, slots=True)
class Stranded:
    """A pod that no pool can help now.

    Attributes:
        pod: the pod.
        reasons: how many pools cannot for each reason.
    """

    pod: Pod
    reasons: Mapping[str, int]

    @property
    def message(self) -> str:
        """What the autoscaler tells the pod."""
        counts = [f"{number} {reason}" for reason, number in sorted(self.reasons.items())]
        return "pod didn't trigger scale-up: " + (", ".join(counts) or "no node pool is autoscaled")


def offers(seen: Seen, backoff: Mapping[str, float]) -> Iterator[Offer]:
    """What the autoscaled pools offer; those for ProvisioningRequests get no nodes this way.

    Args:
        seen: the cluster.
        backoff: until when, in simulated seconds, a pool is let alone, by name.
    """
    for pool in seen.pools:
        if not pool.autoscaled or pool.capacity == "queued":
            continue
        stopped = sum(each.pool == pool.name and each.state == "stopped" for each in seen.machines)
        left = pool.maximum - counted(seen.machines, pool) + stopped
        closed = BACKED_OFF if backoff.get(pool.name, 0) > seen.now else FULL if left <= 0 else ""
        for zone in pool.zones:
            there = sum(each.pool == pool.name and each.zone == zone for each in seen.machines)
            yield Offer(pool, zone, room(pool, zone, seen.daemons), left, there, closed)


def pending(seen: Seen) -> list[Pod]:
    """The pods that ask for a node."""
    return [
        pod
        for pod in seen.pods
        if pod.unschedulable
        and not (pod.node or pod.deleting or pod.ended or pod.of_node or pod.consumes)
        and (pod.raw.get("spec", {}).get("priority") or 0) >= _LEAST_PRIORITY
    ]


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


def _complete(seen: Seen, pool: NodePool, name: str) -> bool:
    """Whether a node has become what its pool promises."""
    node = seen.nodes[name]
    shown = not pool.accelerator or pool.accelerator_resource in node.allocatable
    young = any(taint.key in (UNINITIALIZED, NOT_READY) for taint in node.taints)
    return shown and not young and (node.ready or node.cordoned)


def grow(seen: Seen, offered: Sequence[Offer]) -> tuple[Growth | None, list[Stranded]]:
    """The next pool that gets nodes, and the pods that none can help."""
    _, waiting = place(largest_first(pending(seen)), rooms(seen))
    stranded = [
        Stranded(pod, reasons(pod, offered))
        for pod in waiting
        if all(each.closed or obstacle(pod, each.room) for each in offered)
    ]
    wanted = {pod.selector.get(COMPUTE_CLASS, "") for pod in waiting}
    for name in sorted(wanted):
        pods = [pod for pod in waiting if pod.selector.get(COMPUTE_CLASS, "") == name]
        options = list(_options(pods, offered))
        chosen = best(options, specification=seen.classes.get(name), priorities=seen.priorities)
        if chosen is not None:
            before = counted(seen.machines, chosen.pool)
            return Growth(chosen.pool, _zones(chosen, offered), chosen.pods, before), stranded
    return None, stranded


def _options(pods: Sequence[Pod], offered: Sequence[Offer]) -> Iterator[Option]:
    for offer in offered:
        if offer.closed:
            continue
        used, placed = pack(pods, offer.room, offer.left)
        if placed:
            unused = waste(offer.room, used)
            yield Option(offer.pool, offer.zone, len(used), tuple(placed), unused, offer.there)


def _zones(chosen: Option, offered: Sequence[Offer]) -> tuple[str, ...]:
    """The zones of new nodes, where there are fewest first, of those that all of the pods could run in."""
    there = {
        offer.zone: offer.there
        for offer in offered
        if offer.pool == chosen.pool and not any(obstacle(pod, offer.room) for pod in chosen.pods)
    }
    zones: list[str] = []
    for _ in range(chosen.nodes):
        zone = min(there, key=lambda each: (there[each], each != chosen.zone, each))
        there[zone] += 1
        zones.append(zone)
    return tuple(zones)


def reasons(pod: Pod, offered: Sequence[Offer]) -> dict[str, int]:
    """Why each pool cannot help a pod, counted."""
    by_pool = {offer.pool.name: obstacle(pod, offer.room) or offer.closed for offer in offered}
    return dict(Counter(reason for reason in by_pool.values() if reason))
