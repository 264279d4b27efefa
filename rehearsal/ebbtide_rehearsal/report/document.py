"""The report of a rehearsal as a document: steps, cost and nodes over simulated time, and scale-down."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ebbtide.analysis.charges import CLOUD_NAT, charges, cloud_nat, coverages
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.autoscaler.scale_down import UNNEEDED
from ebbtide.declaration.catalog.amounts import Amount, Coverage, Covered, covered
from ebbtide.values.documents import DocumentPart
from ebbtide_rehearsal.cloud.store import ClusterTime, Event

VERSION: Final = "ebbtide.dev/rehearsal/v1"
_HOUR: Final = 3600
Rate = Callable[[int], float]
"""A charge in US dollars per hour, by the number of nodes."""
_Nodes = Mapping[str, tuple[str, float | None]]
"""Pool and price per hour of each node."""
Series = Sequence[tuple[float, float]]
"""Times in simulated seconds, and values."""
_MINUTE = 60


class StepReport(DocumentPart):
    """A step of the scenario."""

    title: str
    """The step's action or expectation."""
    at: float
    """Its start, simulated seconds; 0 if it started before the clock."""
    seconds: float
    """Its duration by the wall clock."""
    misses: tuple[str, ...]
    """Unmet expectations, a sentence each; empty if all were met."""


class EventReport(DocumentPart):
    """An event of the timeline."""

    at: float
    """Simulated seconds."""
    kind: str
    """The kind of event, such as `node-added`."""
    text: str
    """A sentence."""
    facts: dict[str, Any]
    """The same as data."""


class JobsReport(DocumentPart):
    """Counts of submitted Jobs and pipeline runs at a time."""

    at: float
    """Simulated seconds."""
    waiting: int
    """Suspended, or without a running pod."""
    running: int
    """With a running pod; of pipeline runs, those that have not ended."""
    ended: int
    """Succeeded or failed."""


class MoneyReport(DocumentPart):
    """The total cost at a time."""

    at: float
    """Simulated seconds."""
    usd: float
    """US dollars since the start."""
    hourly: float
    """US dollars per hour from then on."""


class Report(DocumentPart):
    """A rehearsal's report. Its clock starts with the first event, as the creation of the cluster. It runs at
    `speed` while the scenario waits (`expect`, `pause`), and with this machine's clock during other steps.
    """

    version: Literal["ebbtide.dev/rehearsal/v1"] = VERSION
    """Version of this document's format."""
    title: str
    """The scenario's title."""
    stack: str
    """The rehearsed stack."""
    speed: float
    """Simulated seconds per second."""
    steps: tuple[StepReport, ...]
    """In order; after a failed step, only the final destroy."""
    events: tuple[EventReport, ...]
    """In order."""
    jobs: tuple[JobsReport, ...]
    """Submitted Jobs and pipeline runs while the scenario expects something, where their counts change."""
    minutes_to_zero: dict[str, float]
    """Simulated minutes from the end of the last Job until the autoscaler had removed the last node of each
    pool."""
    cost: dict[str, float]
    """Simulated cost of each pool's nodes, in US dollars."""
    other_costs: dict[str, float]
    """Simulated cost of the control plane, the network and disks of add-ons, in US dollars."""
    total_cost: float
    """Sum of all costs, in US dollars."""
    without_price: tuple[str, ...]
    """Items without a known price; the total is then a lower bound."""
    estimated: tuple[str, ...]
    """Items with an estimated price; the total is then an estimate."""
    money: tuple[MoneyReport, ...]
    """The total cost over time; it changes linearly between two entries."""
    seconds: float
    """Total duration by the wall clock."""
    memory_mib: int
    """Peak memory of the fake cloud and its control planes, MiB."""

    @property
    def met(self) -> bool:
        """True if every expectation was met."""
        return not any(step.misses for step in self.steps)


@dataclass(frozen=True, slots=True)
class Rates:
    """Charges of a stack besides its nodes, and the gaps in all of its prices.

    Attributes:
        unknown: items without a known price.
        estimated: items with an estimated price.
        commitments: commitments, which pay for parts of nodes; their own charges are among the items.
        periods: items that are billed in a period alone, each with US dollars per hour, begin and end.
    """

    by_item: Mapping[str, Rate] = field(default_factory=dict[str, Rate])
    unknown: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()
    commitments: tuple[Coverage, ...] = ()
    periods: tuple[tuple[str, float, float, float], ...] = ()

    def on(self, clock: Callable[[float], float]) -> "Rates":
        """Return the rates with the begins and ends that a clock shows."""
        periods = ((item, hourly, clock(begin), clock(end)) for item, hourly, begin, end in self.periods)
        return replace(self, periods=tuple(periods))

    def changes(self, now: float) -> Iterator[Event]:
        """Yield the begins and ends of periods until a time."""
        for item, hourly, begin, end in self.periods:
            for at, rate in ((max(0.0, begin), hourly), (end, 0.0)):
                if end > 0 and at < now:
                    yield Event(0, at, "charge-changed", "", {"item": item, "hourly": rate})


@dataclass(slots=True)
class CommitmentUse:
    """Hours of a commitment.

    Attributes:
        used: hours of its units that nodes used.
        last: hours in which all of them were used.
        more: hours in which nodes could have used one more.
    """

    used: float = 0.0
    last: float = 0.0
    more: float = 0.0


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
    commitments: tuple[CommitmentUse, ...] = ()
    total: list[tuple[float, float, float]] = field(default_factory=list[tuple[float, float, float]])


def rates(recording: Recording) -> Rates:
    """Return the charges of a recorded program, without those of its pools, with periods in Unix time."""
    by_item: dict[str, Rate] = {}
    periods: list[tuple[str, float, float, float]] = []
    without_price, estimated, pools = Amount(), list[str](), read_pools(recording)
    for charge in charges(recording, read_clusters(recording), pools):
        if charge.pool:
            without_price += charge.maximum
            estimated += charge.maximum.estimated
        elif charge.begins and charge.ends:
            without_price += charge.maximum
            estimated += charge.maximum.estimated
            times = charge.begins.timestamp(), charge.ends.timestamp()
            periods.append((charge.item, charge.maximum.known, *times))
        else:
            without_price += charge.idle
            known = by_item.get(charge.item, _nothing)
            by_item[charge.item] = _sum(known, _nat if charge.item == CLOUD_NAT else _flat(charge.idle.known))
    committed = coverages(recording, pools)
    unpriced = tuple(dict.fromkeys(estimated))
    return Rates(by_item, without_price.unknown, unpriced, committed, tuple(periods))


def ledger(events: Iterable[Event], now: float, other: Rates) -> Ledger:
    """Return the costs of a timeline.

    Args:
        events: the whole timeline.
        now: simulated seconds since the start; existing nodes and clusters cost until then.
        other: charges besides nodes, from the creation of a cluster to the deletion of the last one; begins
            and ends are in the timeline's seconds.
    """
    costs = Ledger(commitments=tuple(CommitmentUse() for _ in other.commitments))
    without = Rates(commitments=other.commitments)
    nodes: dict[str, tuple[str, float | None]] = {}
    clusters: set[str] = set()
    at = 0.0
    changes = ("node-added", "node-removed", "cluster-created", "cluster-deleted", "charge-changed")

    for event in sorted([*events, *other.changes(now)], key=lambda event: event.at):
        if event.kind not in changes:
            continue
        total = _book(costs, nodes, (event.at - at) / _HOUR, other if clusters else without)
        at = event.at
        match event.kind:
            case "node-added":
                nodes[event.facts["node"]] = event.facts["pool"], event.facts["hourly"]
            case "node-removed":
                nodes.pop(event.facts["node"], None)
            case "cluster-created":
                clusters.add(event.facts["id"])
            case "charge-changed":
                rate = _flat(event.facts["hourly"])
                other = replace(other, by_item={**other.by_item, event.facts["item"]: rate})
            case _:
                clusters.discard(event.facts["id"])
        costs.total.append((at, total, _hourly(nodes, other if clusters else without)))
    rates = other if clusters else without
    costs.total.append((now, _book(costs, nodes, (now - at) / _HOUR, rates), _hourly(nodes, rates)))
    return costs


def _book(costs: Ledger, nodes: _Nodes, hours: float, other: Rates) -> float:
    """Charge some hours, and return the total."""
    for pool, hourly in nodes.values():
        costs.pools[pool] += (hourly or 0.0) * hours
    for item, rate in other.by_item.items():
        costs.others[item] += rate(len(nodes)) * hours
    effect = _covered(nodes, other)
    for pool, usd in effect.saved.items():
        costs.pools[pool] -= usd * hours
    numbers = zip(other.commitments, effect.used, effect.wanted, strict=True)
    for use, (committed, used, wanted) in zip(costs.commitments, numbers, strict=True):
        use.used += used * hours
        use.last += hours * (wanted >= committed.count)
        use.more += hours * (wanted > committed.count)
    return sum(costs.pools.values()) + sum(costs.others.values())


def _hourly(nodes: _Nodes, other: Rates) -> float:
    rates = (rate(len(nodes)) for rate in other.by_item.values())
    saved = sum(_covered(nodes, other).saved.values())
    return sum(usd or 0.0 for _, usd in nodes.values()) - saved + sum(rates)


def _covered(nodes: _Nodes, other: Rates) -> Covered:
    return covered(other.commitments, Counter(pool for pool, _ in nodes.values()))


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


@dataclass(frozen=True, slots=True)
class PoolSeries:
    """The nodes of a pool over time.

    Attributes:
        nodes: the number of nodes from each time on.
        most: the largest number.
        reclaims: times of reclaimed nodes.
        refusals: times at which the cloud had no node.
    """

    pool: str
    nodes: Series
    most: int
    reclaims: tuple[float, ...]
    refusals: tuple[float, ...]


def end(report: Report) -> float:
    """Return the last time of a report, simulated seconds."""
    times = (*(e.at for e in report.events), *(m.at for m in report.money), *(j.at for j in report.jobs))
    return max(times, default=0.0)


def pools(report: Report) -> list[PoolSeries]:
    """Return the nodes of each pool that had a node, an order or a refusal."""
    last = end(report)
    by_pool: defaultdict[str, list[EventReport]] = defaultdict(list)
    for event in report.events:
        if event.kind in ("node-added", "node-removed", "node-reclaimed", "no-node") and event.facts.get(
            "pool"
        ):
            by_pool[event.facts["pool"]].append(event)
    return [_pool(pool, events, last) for pool, events in sorted(by_pool.items())]


def _pool(pool: str, events: Sequence[EventReport], last: float) -> PoolSeries:
    nodes: set[str] = set()
    counts: list[tuple[float, float]] = [(0.0, 0)]
    for event in events:
        if event.kind == "node-added":
            nodes.add(event.facts["node"])
        elif event.kind == "node-removed":
            nodes.discard(event.facts["node"])
        counts.append((event.at, len(nodes)))
    return PoolSeries(
        pool,
        [*counts, (last, len(nodes))],
        int(max(count for _, count in counts)),
        tuple(_times(events, "node-reclaimed")),
        tuple(_times(events, "no-node")),
    )


def _times(events: Iterable[EventReport], kind: str) -> Iterable[float]:
    return (event.at for event in events if event.kind == kind)


def minutes_to_zero(events: Iterable[Event], jobs: Sequence[JobsReport]) -> dict[str, float]:
    """Return the simulated minutes from the end of the last Job until each pool had no node.

    Only pools that the autoscaler emptied before a cluster was deleted are included.

    Args:
        jobs: counts of Jobs over time, by the clock of the timeline.
    """
    if not jobs or jobs[-1].waiting or jobs[-1].running or not jobs[-1].ended:
        return {}
    last = jobs[-1].at
    nodes: dict[str, set[str]] = {}
    emptied: dict[str, float] = {}
    for event in events:
        if event.kind == "cluster-deleted":
            break
        if event.kind not in {"node-added", "node-removed"}:
            continue
        pool = nodes.setdefault(event.facts["pool"], set())
        if event.kind == "node-added":
            pool.add(event.facts["node"])
            emptied.pop(event.facts["pool"], None)
            continue
        pool.discard(event.facts["node"])
        if not pool and event.at >= last and event.facts["why"].startswith(UNNEEDED):
            emptied[event.facts["pool"]] = round((event.at - last) / _MINUTE, 1)
    return emptied
