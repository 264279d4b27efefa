"""Cost of a rehearsal in simulated time: nodes over their lifetimes, other charges over the clusters'."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ebbtide.analysis.costs.charges import CLOUD_NAT, charges, cloud_nat
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide_rehearsal.cloud.store import ClusterTime, Event

_HOUR: Final = 3600

Rate = Callable[[int], float]
"""A charge in US dollars per hour, by the number of nodes."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Charges of a stack besides its nodes, and the gaps in all of its prices.

    Attributes:
        by_item: the rate of each item.
        unknown: items without a known price.
        estimated: items with an estimated price.
    """

    by_item: Mapping[str, Rate] = field(default_factory=dict[str, Rate])
    unknown: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()


@dataclass(slots=True)
class Ledger:
    """Costs in US dollars.

    Attributes:
        pools: nodes by pool; those without a known price add nothing.
        others: other charges by item.
        total: at each event that changes a rate: simulated seconds, the total until then, and US dollars per
            hour from then on.
    """

    pools: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    others: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    total: list[tuple[float, float, float]] = field(default_factory=list[tuple[float, float, float]])


def rates(recording: Recording) -> Rates:
    """Return the charges of a recorded program, without those of its pools."""
    by_item: dict[str, Rate] = {}
    without_price, estimated = Amount(), list[str]()
    for charge in charges(recording, read_clusters(recording), read_pools(recording)):
        if charge.pool:
            without_price += charge.maximum
            estimated += charge.maximum.estimated
        else:
            without_price += charge.idle
            known = by_item.get(charge.item, _nothing)
            by_item[charge.item] = _sum(known, _nat if charge.item == CLOUD_NAT else _flat(charge.idle.known))
    return Rates(by_item, without_price.unknown, tuple(dict.fromkeys(estimated)))


def ledger(events: Iterable[Event], now: float, other: Rates) -> Ledger:
    """Return the costs of a timeline.

    Args:
        events: the whole timeline.
        now: simulated seconds since the start; existing nodes and clusters cost until then.
        other: charges besides nodes, from the creation of a cluster to the deletion of the last one.
    """
    costs = Ledger()
    nodes: dict[str, tuple[str, float | None]] = {}
    clusters: set[str] = set()
    at = 0.0

    def book(end: float) -> float:
        """Charge the time since the last event, and return the total."""
        hours = (end - at) / _HOUR
        for pool, hourly in nodes.values():
            costs.pools[pool] += (hourly or 0.0) * hours
        for item, rate in other.by_item.items() if clusters else ():
            costs.others[item] += rate(len(nodes)) * hours
        return sum(costs.pools.values()) + sum(costs.others.values())

    def hourly() -> float:
        rates = (rate(len(nodes)) for rate in other.by_item.values()) if clusters else ()
        return sum(usd or 0.0 for _, usd in nodes.values()) + sum(rates)

    for event in events:
        if event.kind not in ("node-added", "node-removed", "cluster-created", "cluster-deleted"):
            continue
        total = book(event.at)
        at = event.at
        match event.kind:
            case "node-added":
                nodes[event.facts["node"]] = event.facts["pool"], event.facts["hourly"]
            case "node-removed":
                nodes.pop(event.facts["node"], None)
            case "cluster-created":
                clusters.add(event.facts["id"])
            case _:
                clusters.discard(event.facts["id"])
        costs.total.append((at, total, hourly()))
    costs.total.append((now, book(now), hourly()))
    return costs


def timed(events: Iterable[Event], time: ClusterTime) -> list[Event]:
    """Return a timeline in the cluster's time.

    A node's removal also gets the node's `seconds` and its `cost`, in US dollars, since it was added.
    """
    added: dict[str, Event] = {}
    timeline: list[Event] = []
    for simulated in events:
        event = replace(simulated, at=time.at(simulated.at))
        if event.kind == "node-added":
            added[event.facts["node"]] = event
        elif event.kind == "node-removed" and (start := added.pop(event.facts["node"], None)):
            event = _with_cost(event, event.at - start.at, start.facts["hourly"])
        timeline.append(event)
    return timeline


def _with_cost(removal: Event, seconds: float, hourly: float | None) -> Event:
    cost = None if hourly is None else hourly * seconds / _HOUR
    text = "an unknown amount" if cost is None else f"${cost:.3f}"
    return replace(
        removal,
        text=f"{removal.text} It cost {text} in {seconds / 60:.0f} min.",
        facts={**removal.facts, "seconds": seconds, "cost": cost},
    )


def spent(events: Iterable[Event], now: float) -> dict[str, float]:
    """Return the cost of each pool's nodes in US dollars.

    Args:
        events: the whole timeline.
        now: simulated seconds since the start; existing nodes cost until then.
    """
    return dict(ledger(events, now, Rates()).pools)


def _nothing(nodes: int) -> float:
    del nodes
    return 0.0


def _nat(nodes: int) -> float:
    return cloud_nat(nodes).known


def _flat(hourly: float) -> Rate:
    return lambda _: hourly


def _sum(rate: Rate, other: Rate) -> Rate:
    return lambda nodes: rate(nodes) + other(nodes)
