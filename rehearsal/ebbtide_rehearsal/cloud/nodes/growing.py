"""Which node pools get new nodes for pods that the scheduler found no node for (kubernetes/autoscaler, FAQ,
"How does scale-up work?", 2026)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ebbtide_rehearsal.cloud.nodes.cluster import Seen
from ebbtide_rehearsal.cloud.nodes.fitting import Room, largest_first, obstacle, pack, place
from ebbtide_rehearsal.cloud.nodes.machines import counted
from ebbtide_rehearsal.cloud.nodes.names import group
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.preferences import COMPUTE_CLASS, Option, best, waste
from ebbtide_rehearsal.cloud.nodes.rooms import unbooked
from ebbtide_rehearsal.cloud.nodes.templates import room
from ebbtide_rehearsal.cloud.pools import NodePool

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
        return f"pod didn't trigger scale-up: {', '.join(counts)}"


def offers(seen: Seen, backoff: Mapping[str, float]) -> Iterator[Offer]:
    """What the autoscaled pools offer; those for ProvisioningRequests get no nodes this way.

    Args:
        seen: the cluster.
        backoff: ends of backoffs in simulated seconds, by node group.
    """
    for pool in seen.pools:
        if not pool.autoscaled or pool.capacity == "queued":
            continue
        stopped = sum(each.pool == pool.name and each.state == "stopped" for each in seen.machines)
        left = pool.maximum - counted(seen.machines, pool) + stopped
        full = left < pool.together
        for zone in pool.zones:
            backed_off = backoff.get(group(pool, zone), 0) > seen.now
            closed = BACKED_OFF if backed_off else FULL if full else ""
            there = sum(each.pool == pool.name and each.zone == zone for each in seen.machines)
            yield Offer(pool, zone, room(pool, zone, seen.daemons), left, there, closed)


def pending(seen: Seen) -> list[Pod]:
    """The pods that ask for a node."""
    return [pod for pod in seen.pods if _waits(pod) and not pod.request]


def ignored(seen: Seen) -> Iterator[tuple[Pod, str]]:
    """The pods that wait for a node and never bring one, with what the autoscaler tells them: the capacity of
    their ProvisioningRequest is all that they get (kubernetes/autoscaler, processors/provreq/pods_filter.go,
    2026)."""
    for pod in seen.pods:
        if _waits(pod) and pod.request:
            whose = f"{pod.namespace}/{pod.request}"
            words = "Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest"
            yield pod, f"{words} {whose}"


def _waits(pod: Pod) -> bool:
    return (
        pod.unschedulable
        and not (pod.node or pod.deleting or pod.ended or pod.of_node)
        and (pod.raw.get("spec", {}).get("priority") or 0) >= _LEAST_PRIORITY
    )


def grow(seen: Seen, offered: Sequence[Offer]) -> tuple[Growth | None, list[Stranded]]:
    """The next pool that gets nodes, and the pods that none can help."""
    _, waiting = place(largest_first(pending(seen)), unbooked(seen))
    stranded = [
        Stranded(pod, reasons(pod, offered))
        for pod in waiting
        if all(each.closed or obstacle(pod, each.room) for each in offered)
    ]
    wanted = {pod.selector.get(COMPUTE_CLASS, "") for pod in waiting}
    for name in sorted(wanted):
        pods = [pod for pod in waiting if pod.selector.get(COMPUTE_CLASS, "") == name]
        chosen = best(list(options(pods, offered)), seen, seen.classes.get(name))
        if chosen is not None:
            before = counted(seen.machines, chosen.pool)
            return Growth(chosen.pool, spread(chosen, offered), chosen.pods, before), stranded
    return None, stranded


def options(pods: Sequence[Pod], offered: Sequence[Offer]) -> Iterator[Option]:
    """What each pool could do for pods, in each zone."""
    for offer in offered:
        if offer.closed:
            continue
        used, placed = pack(pods, offer.room, offer.left)
        if placed:
            unused = waste(offer.room, used)
            nodes = max(len(used), offer.pool.together)
            free = offer.room.free
            yield Option(offer.pool, offer.zone, nodes, tuple(placed), free, unused, offer.there)


def spread(chosen: Option, offered: Sequence[Offer]) -> tuple[str, ...]:
    """The zones of new nodes, where there are fewest first, of those that all of the pods could run in and
    that are not in backoff."""
    there = {
        offer.zone: offer.there
        for offer in offered
        if offer.pool == chosen.pool
        and not offer.closed
        and not any(obstacle(pod, offer.room) for pod in chosen.pods)
    }
    zones: list[str] = []
    for _ in range(chosen.nodes):
        zone = min(there, key=lambda each: (there[each], each != chosen.zone, each))
        there[zone] += 1
        zones.append(zone)
    return tuple(zones)


def reasons(pod: Pod, offered: Sequence[Offer]) -> dict[str, int]:
    """Count the node groups that cannot help a pod, by reason."""
    by_group = {group(offer.pool, offer.zone): offer.closed or obstacle(pod, offer.room) for offer in offered}
    return dict(Counter(reason for reason in by_group.values() if reason))
