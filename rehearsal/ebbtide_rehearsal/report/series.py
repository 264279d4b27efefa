"""Series over simulated time, from the timeline of a rehearsal."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ebbtide_rehearsal.report.document import EventReport, Report

Series = Sequence[tuple[float, float]]
"""Times in simulated seconds, and values."""


@dataclass(frozen=True, slots=True)
class PoolSeries:
    """The nodes of a pool over time.

    Attributes:
        pool: the pool's name.
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
