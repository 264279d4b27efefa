"""Outcome of one replay: waiting, lost work, nodes and cost."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.store import Event
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.mapping import Work
from ebbtide_rehearsal.report.cost import Ledger, ledger
from ebbtide_rehearsal.report.series import Series


@dataclass(slots=True)
class JobOutcome:
    """Outcome of a job.

    Attributes:
        work: the job.
        started: time at which all of its pods first ran, seconds; None for never.
        ended: time of its end, seconds; None for never.
        preemptions: how often Kueue evicted it while it ran.
        interruptions: how often it lost a node or failed, by cause.
        lost: seconds of work that were repeated.
        why_not: why it never ran; empty if it did.
    """

    work: Work
    started: float | None = None
    ended: float | None = None
    preemptions: int = 0
    interruptions: Counter[str] = field(default_factory=Counter[str])
    lost: float = 0.0
    why_not: str = ""

    @property
    def waited(self) -> float | None:
        """Seconds from submission until its first run."""
        return None if self.started is None else self.started - self.work.job.submit

    @property
    def missed(self) -> bool:
        """Return whether the job missed its deadline."""
        deadline = self.work.job.deadline
        return deadline is not None and (self.ended is None or self.ended > deadline)


@dataclass(slots=True)
class Outcome:
    """The outcome of one replay; times in seconds since the first submission.

    Attributes:
        declaration: the declaration.
        jobs: the jobs, in the trace's order.
        events: nodes that were added and removed, as in a rehearsal's timeline.
        end: time at which nothing more happened.
        reclaims: times of reclaims by pool.
        refusals: times of stock-outs by pool.
        busy_hours: node hours with a pod by pool.
        team_usd: US dollars of the used parts of nodes by team.
    """

    declaration: Declaration
    jobs: Sequence[JobOutcome]
    events: list[Event] = field(default_factory=list[Event])
    end: float = 0.0
    reclaims: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    refusals: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    busy_hours: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    team_usd: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def node(self, at: float, machine: Machine, kind: str) -> None:
        """Record that a machine was added or removed."""
        facts = {"pool": machine.pool, "node": machine.name, "hourly": machine.hourly}
        self.events.append(Event(len(self.events), at, kind, "", facts))

    def costs(self, until: float) -> Ledger:
        """Return the cost until a time: nodes that exist at the end exist until then."""
        created = Event(0, 0.0, "cluster-created", "", {"id": self.declaration.name})
        events = sorted(self.events, key=lambda event: event.at)
        return ledger([created, *events], until, self.declaration.rates)

    def node_hours(self, until: float) -> dict[str, float]:
        """Return the node hours of each pool until a time."""
        hours: dict[str, float] = {}
        for pool in self.declaration.pools:
            counts = self.nodes(pool.name)
            total = sum(count * (later - at) for (at, count), (later, _) in pairwise(counts))
            hours[pool.name] = (total + counts[-1][1] * max(0.0, until - counts[-1][0])) / 3600
        return hours

    def nodes(self, pool: str) -> Series:
        """Return the number of a pool's nodes over time."""
        changes = (
            (event.at, 1 if event.kind == "node-added" else -1)
            for event in self.events
            if event.facts["pool"] == pool
        )
        return _summed(changes)

    def waiting(self) -> Series:
        """Return the number of waiting jobs over time, without those that never fit."""
        return _summed(
            change
            for job in self.jobs
            if not job.work.why_not
            for change in (
                (job.work.job.submit, 1),
                *(() if job.started is None else ((job.started, -1),)),
            )
        )


def _summed(changes: Iterable[tuple[float, int]]) -> Series:
    """Return a count over time from its changes."""
    by_time = Counter[float]()
    for at, change in changes:
        by_time[at] += change
    count = 0
    series: list[tuple[float, float]] = [(0.0, 0.0)]
    for at, change in sorted(by_time.items()):
        count += change
        series.append((at, float(count)))
    return series


def thinned(series: Series, most: int, end: float) -> list[tuple[float, float]]:
    """Return a series with a limited number of points, each the largest value of its part of the time."""
    if len(series) <= most:
        return list(series)
    times = [at for at, _ in series]
    step = end / most
    points: list[tuple[float, float]] = []
    for number in range(most):
        first, last = bisect_right(times, number * step) - 1, bisect_right(times, (number + 1) * step) - 1
        points.append((number * step, max(value for _, value in series[max(0, first) : last + 1])))
    return points


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the value that a share of the values does not exceed; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return median(ordered) if share == 1 / 2 else ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def waits(jobs: Iterable[JobOutcome]) -> list[float]:
    """Return the waiting times of the jobs that ran."""
    return [job.waited for job in jobs if job.waited is not None]


def sizes(jobs: Iterable[JobOutcome]) -> Iterator[tuple[str, JobOutcome]]:
    """Yield each job with its size: its accelerators, or its pods without any, in powers of two."""
    for job in jobs:
        total = job.work.shape.gpus * job.work.pods
        unit = "GPU" if total else "CPU"
        count = total or max(1, round(job.work.shape.cpu * job.work.pods / 1000))
        low = 1 << (count.bit_length() - 1)
        high = 2 * low - 1
        label = f"{low}" if low == high else f"{low} to {high}"
        yield f"{label} {unit if low == high == 1 else unit + 's'}", job
