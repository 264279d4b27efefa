"""Scale-up: selection of the node pools that grow for pending pods (kubernetes/autoscaler, FAQ, "How does
scale-up work?", 2026)."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ebbtide.autoscaler.expander import Option, best, waste
from ebbtide.autoscaler.nodes import NodePool, billed_count, node_group, node_info
from ebbtide.autoscaler.scheduling import NodeInfo, Pod, largest_first, obstacle, pack, schedule
from ebbtide.autoscaler.snapshot import ClusterSnapshot, unbooked
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS

BACKED_OFF = "in backoff after failed scale-up"
FULL = "max node group size reached"

_LEAST_PRIORITY = -10
"""Minimum priority of pods that cause a scale-up (`expendable-pods-priority-cutoff`)."""


@dataclass(frozen=True, slots=True)
class ExpansionOption:
    """A possible new node of a pool in a zone.

    Attributes:
        headroom: number of nodes up to the pool's maximum.
        existing: number of the pool's nodes in the zone.
        closed: the autoscaler's reason why the pool cannot grow in the zone now; empty if it can.
    """

    pool: NodePool
    zone: str
    node_info: NodeInfo
    headroom: int
    existing: int
    closed: str


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """A scale-up of one pool.

    Attributes:
        zones: zone of each new node.
        pods: pods for the nodes.
        before: number of the pool's nodes before.
    """

    pool: NodePool
    zones: tuple[str, ...]
    pods: tuple[Pod, ...]
    before: int

    @property
    def message(self) -> str:
        """Message of the autoscaler's event for the pods."""
        after = self.before + len(self.zones)
        sizes = f"{self.before}->{after} (max: {self.pool.maximum})"
        return f"pod triggered scale-up: [{{{self.pool.name} {sizes}}}]"


@dataclass(frozen=True, slots=True)
class NoScaleUpInfo:
    """A pod for which no pool can grow now.

    Attributes:
        reasons: number of pools by reason.
    """

    pod: Pod
    reasons: Mapping[str, int]

    @property
    def message(self) -> str:
        """Message of the autoscaler's event for the pod."""
        counts = [f"{number} {reason}" for reason, number in sorted(self.reasons.items())]
        return f"pod didn't trigger scale-up: {', '.join(counts)}"


def expansion_options(snapshot: ClusterSnapshot, backoff: Mapping[str, float]) -> Iterator[ExpansionOption]:
    """Yield the expansion options of autoscaled pools. Queued pools grow only for ProvisioningRequests.

    Args:
        backoff: ends of backoffs in simulated seconds, by node group.
    """
    for pool in snapshot.pools:
        if not pool.autoscaled or pool.capacity == "queued":
            continue
        stopped = sum(
            machine.pool == pool.name and machine.state == "stopped" for machine in snapshot.machines
        )
        headroom = pool.maximum - billed_count(snapshot.machines, pool) + stopped
        full = headroom < pool.together
        for zone in pool.zones:
            backed_off = backoff.get(node_group(pool, zone), 0) > snapshot.now
            closed = BACKED_OFF if backed_off else FULL if full else ""
            existing = sum(
                machine.pool == pool.name and machine.zone == zone for machine in snapshot.machines
            )
            yield ExpansionOption(
                pool, zone, node_info(pool, zone, snapshot.daemons), headroom, existing, closed
            )


def ignored(snapshot: ClusterSnapshot) -> Iterator[tuple[Pod, str]]:
    """Yield pending pods that never cause a scale-up, with the autoscaler's message: they only get the
    capacity of their ProvisioningRequest (kubernetes/autoscaler, processors/provreq/pods_filter.go, 2026)."""
    for pod in snapshot.pods:
        if _waits(pod) and pod.request:
            request = f"{pod.namespace}/{pod.request}"
            words = "Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest"
            yield pod, f"{words} {request}"


def _waits(pod: Pod) -> bool:
    return (
        pod.unschedulable
        and not (pod.node or pod.deleting or pod.ended or pod.of_node)
        and (pod.raw.get("spec", {}).get("priority") or 0) >= _LEAST_PRIORITY
    )


def scale_up(
    snapshot: ClusterSnapshot, offered: Sequence[ExpansionOption]
) -> tuple[ScaleUp | None, list[NoScaleUpInfo]]:
    """Return the next scale-up, and the pods for which no pool can grow."""
    pending = [pod for pod in snapshot.pods if _waits(pod) and not pod.request]
    _, waiting = schedule(largest_first(pending), unbooked(snapshot))
    unschedulable = [
        NoScaleUpInfo(pod, reasons(pod, offered))
        for pod in waiting
        if all(offer.closed or obstacle(pod, offer.node_info) for offer in offered)
    ]
    class_names = {pod.selector.get(COMPUTE_CLASS, "") for pod in waiting}
    for name in sorted(class_names):
        pods = [pod for pod in waiting if pod.selector.get(COMPUTE_CLASS, "") == name]
        chosen = best(list(options(pods, offered)), snapshot, snapshot.classes.get(name))
        if chosen is not None:
            before = billed_count(snapshot.machines, chosen.pool)
            return ScaleUp(chosen.pool, spread(chosen, offered), chosen.pods, before), unschedulable
    return None, unschedulable


def options(pods: Sequence[Pod], offered: Sequence[ExpansionOption]) -> Iterator[Option]:
    """Yield each pool's option for pods, in each zone."""
    for offer in offered:
        if offer.closed:
            continue
        used, placed = pack(pods, offer.node_info, offer.headroom)
        if placed:
            unused = waste(offer.node_info, used)
            nodes = max(len(used), offer.pool.together)
            free = offer.node_info.free
            yield Option(offer.pool, offer.zone, nodes, tuple(placed), free, unused, offer.existing)


def spread(chosen: Option, offered: Sequence[ExpansionOption]) -> tuple[str, ...]:
    """Return the zones of new nodes, least-populated first, among those that fit all of the pods and are not
    in backoff."""
    existing = {
        offer.zone: offer.existing
        for offer in offered
        if offer.pool == chosen.pool
        and not offer.closed
        and not any(obstacle(pod, offer.node_info) for pod in chosen.pods)
    }
    zones: list[str] = []
    for _ in range(chosen.nodes):
        zone = min(existing, key=lambda name: (existing[name], name != chosen.zone, name))
        existing[zone] += 1
        zones.append(zone)
    return tuple(zones)


def reasons(pod: Pod, offered: Sequence[ExpansionOption]) -> dict[str, int]:
    """Count the node groups that do not fit a pod, by reason."""
    by_group = {
        node_group(offer.pool, offer.zone): offer.closed or obstacle(pod, offer.node_info)
        for offer in offered
    }
    return dict(Counter(reason for reason in by_group.values() if reason))


def missing_machines(snapshot: ClusterSnapshot, known: Collection[str]) -> Iterator[tuple[NodePool, int]]:
    """Yield the number of machines that each pool lacks of its initial count if it is new, else of its
    minimum.

    Args:
        known: pools whose initial nodes were ordered.
    """
    for pool in snapshot.pools:
        existing = sum(machine.pool == pool.name and not machine.is_leaving for machine in snapshot.machines)
        least = pool.minimum if pool.autoscaled else pool.initial
        desired = least if pool.name in known else max(pool.initial, least)
        if existing < desired:
            yield pool, desired - existing
