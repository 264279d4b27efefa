"""The report of a replay as a document: waiting, cost and work of each cluster, over the seeds; and in
sentences: the change and its effect, then each cluster for itself.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import Final, Literal

from ebbtide.text import and_list, bound, several
from ebbtide.values import durations
from ebbtide.values.documents import DocumentPart
from ebbtide_rehearsal.report.document import Ledger
from kueue_replay.cluster import Declaration
from kueue_replay.mapping import Mapped
from kueue_replay.simulation import JobOutcome, Outcome, quantile, sizes, thinned, waits

VERSION: Final = "ebbtide.dev/replay/v1"

_POINTS: Final = 600
_LINES: Final = 5
_SHAPES: Final = 20
_USERS: Final = 20
_HOUR: Final = 3600
_CLEAR: Final = 0.005
_CAUSES: Final = {
    "preemption": ("preemption",),
    "reclaim": ("reclaim",),
    "scale-down": ("scale-down",),
    "node expired": ("end of a node's run", "ends of nodes' runs"),
    "failure": ("failure",),
}
"""Singular and plural of each cause of an interruption."""


class Spread(DocumentPart):
    """A number over the seeds."""

    median: float
    """Their median."""
    least: float
    """The smallest."""
    most: float
    """The largest."""


class WaitReport(DocumentPart):
    """Waiting time of a group of jobs, from submission until all pods of a job ran first."""

    group: str
    """A team, a size, a user, or `all`."""
    jobs: int
    """Number of jobs that ran with the first seed."""
    mean: Spread | None
    """Mean, seconds; null if none ran."""
    half: Spread | None
    """Median, seconds."""
    most: Spread | None
    """95th percentile, seconds."""


class PoolReport(DocumentPart):
    """A node pool over the replay."""

    pool: str
    """Its name."""
    capacity: str
    """Its purchase option."""
    machine: str
    """Its machine type."""
    maximum: int
    """Its maximum node count."""
    usd: Spread | None
    """Cost of its nodes, US dollars; null if the price of a node is unknown."""
    node_hours: Spread
    """Hours of its nodes."""
    idle_hours: Spread
    """Of these, hours without a job's pod; a system pool has no others."""
    reclaims: Spread
    """Nodes that the cloud took."""
    refusals: Spread
    """Requests that a stock-out refused."""


class CommitmentReport(DocumentPart):
    """A commitment over the replay."""

    item: str
    """Name of its charge."""
    used: Spread
    """Share of its units' hours that nodes used."""
    last: Spread
    """Share of the time in which all of its units were used."""
    more: Spread
    """Share of the time in which nodes could have used one more."""
    pays_above: float | None
    """Share of use above which it costs less than the list price; null if that is unknown."""


class NeverReport(DocumentPart):
    """Jobs that never ran, or did not end, for one reason; with the first seed."""

    why: str
    """The reason."""
    jobs: int
    """Their number."""
    lines: tuple[int, ...]
    """Lines of the first of them in the trace."""


class SeriesReport(DocumentPart):
    """A number over time, with the first seed."""

    title: str
    """Its name."""
    kind: Literal["nodes", "jobs", "money"]
    """Nodes, waiting jobs, or US dollars so far."""
    points: tuple[tuple[float, float], ...]
    """Seconds since the first submission, and the value from then on."""
    reclaims: tuple[float, ...] = ()
    """Times of reclaims."""
    refusals: tuple[float, ...] = ()
    """Times of refusals."""


class ColumnReport(DocumentPart):
    """A declaration's outcome."""

    name: str
    """Its name."""
    usd: Spread
    """Total cost, US dollars; a lower bound if items are without price."""
    pools: tuple[PoolReport, ...]
    """Its node pools."""
    others: dict[str, Spread]
    """Other charges by item, US dollars."""
    commitments: tuple[CommitmentReport, ...] = ()
    """Commitments, whose charges are among the others."""
    teams: dict[str, Spread]
    """Cost of the parts of nodes that each team's jobs used, US dollars."""
    options: dict[str, Spread | None]
    """Cost of nodes by purchase option, US dollars; null if the price of such a node is unknown."""
    waits: tuple[WaitReport, ...]
    """Waiting times: of all jobs, then by team."""
    sizes: tuple[WaitReport, ...]
    """Waiting times by size."""
    users: tuple[WaitReport, ...]
    """Waiting times of the users with the most jobs; empty if the trace names none."""
    ended: Spread
    """Number of jobs that ended."""
    preemptions: Spread
    """Evictions of running jobs by Kueue."""
    interruptions: dict[str, Spread]
    """Running jobs that lost a node or failed, by cause: reclaim, scale-down, node expired, failure."""
    lost_hours: Spread
    """Work of jobs that was repeated, hours."""
    deadlines: int
    """Number of jobs with a deadline."""
    missed: Spread
    """Number of missed deadlines."""
    never: tuple[NeverReport, ...]
    """Jobs that never ran or ended."""
    series: tuple[SeriesReport, ...]
    """Nodes by pool, waiting jobs and cost over time."""


class AssumptionReport(DocumentPart):
    """The effect of an assumption, as ratios to the first seed's outcome; null where that is zero."""

    name: str
    """The assumption."""
    factor: float
    """Its multiple."""
    usd: float | None
    """Ratio of the total cost."""
    wait: float | None
    """Ratio of the mean waiting time."""


class MappingReport(DocumentPart):
    """Jobs of a trace with the same names."""

    queue: str
    """The trace's queue; empty for none."""
    gpu_type: str
    """The trace's type of accelerators; `any` if it has none, empty for jobs without accelerators."""
    local_queue: str
    """The LocalQueue."""
    jobs: int
    """Number of jobs."""


class ShapeReport(DocumentPart):
    """Jobs of a trace with the same requests."""

    requests: str
    """Their requests in the trace: of each pod, or totals without a number of pods."""
    pods: str
    """Their pods in the replay."""
    jobs: int
    """Number of jobs."""


class ReplayReport(DocumentPart):
    """A trace on one declaration, or on two."""

    version: Literal["ebbtide.dev/replay/v1"] = VERSION
    """Version of this document's format."""
    trace: str
    """File of the trace."""
    format: str
    """Its format."""
    jobs: int
    """Number of its jobs."""
    seconds: float
    """Time from its first to its last submission."""
    until: float
    """Time until which every declaration's nodes are billed, seconds since the first submission."""
    notes: tuple[str, ...]
    """What was read how."""
    mapping: tuple[MappingReport, ...]
    """What was mapped to the first declaration how."""
    shapes: tuple[ShapeReport, ...]
    """Requests on the first declaration, the most frequent ones first; the last are all others."""
    seeds: int
    """Number of replays of each declaration."""
    verdict: tuple[str, ...]
    """The result in sentences."""
    columns: tuple[ColumnReport, ...]
    """The outcome of each declaration: the earlier one first."""
    assumptions: tuple[AssumptionReport, ...]
    """The effect of each assumption of the cloud's model on the last declaration; empty for large traces."""
    without_price: tuple[str, ...]
    """Items without a known price; costs are then lower bounds."""
    estimated: tuple[str, ...]
    """Items with an estimated price."""


def total(costs: Ledger) -> float:
    """Return the sum of all known costs."""
    return sum(costs.pools.values()) + sum(costs.others.values())


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 without values."""
    return fmean(values) if values else 0.0


def _spread(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(median=median(found), least=min(found), most=max(found))


def shapes(mapped: Mapped) -> Iterator[ShapeReport]:
    """Yield the requests of the jobs, the most frequent ones first; the last are all others."""
    rows = list(mapped.shapes.items())
    for (requests, pods), jobs in rows[:_SHAPES]:
        yield ShapeReport(requests=requests, pods=pods, jobs=jobs)
    if others := rows[_SHAPES:]:
        jobs = sum(jobs for _, jobs in others)
        yield ShapeReport(requests=f"{len(others):,} others", pods="", jobs=jobs)


def column(declaration: Declaration, outcomes: Sequence[Outcome], until: float) -> ColumnReport:
    """Return the report of a cluster.

    Args:
        outcomes: the outcome of each seed.
        until: time until which nodes are billed.
    """
    first = outcomes[0]
    costs = [outcome.costs(until) for outcome in outcomes]
    hours = [outcome.node_hours(until) for outcome in outcomes]
    teams = sorted({job.work.queue.team for job in first.jobs})
    unpriced = {
        pool.name
        for pool in declaration.pools
        if pool.hourly is None and any(one[pool.name] for one in hours)
    }
    pools = tuple(
        PoolReport(
            pool=pool.name,
            capacity=pool.capacity,
            machine=pool.machine,
            maximum=pool.maximum,
            usd=None if pool.name in unpriced else _spread(cost.pools.get(pool.name, 0.0) for cost in costs),
            node_hours=_spread(one[pool.name] for one in hours),
            idle_hours=_spread(
                max(0.0, one[pool.name] - outcome.busy_hours.get(pool.name, 0.0))
                for one, outcome in zip(hours, outcomes, strict=True)
            ),
            reclaims=_spread(len(outcome.reclaims.get(pool.name, ())) for outcome in outcomes),
            refusals=_spread(len(outcome.refusals.get(pool.name, ())) for outcome in outcomes),
        )
        for pool in declaration.pools
    )
    by_team = {
        team: [[job for job in outcome.jobs if job.work.queue.team == team] for outcome in outcomes]
        for team in teams
    }
    by_option = {
        option: [pool.name for pool in declaration.pools if pool.capacity == option]
        for option in dict.fromkeys(pool.capacity for pool in declaration.pools)
    }
    return ColumnReport(
        name=declaration.name,
        usd=_spread(map(total, costs)),
        pools=pools,
        others={
            item: _spread(cost.others[item] for cost in costs)
            for item in dict.fromkeys(charge.item for charge in declaration.cluster.charges)
        },
        commitments=tuple(_commitments(declaration, costs, until)),
        teams={team: _spread(outcome.team_usd.get(team, 0.0) for outcome in outcomes) for team in teams},
        options={
            option: None
            if unpriced.intersection(names)
            else _spread(sum(cost.pools.get(name, 0.0) for name in names) for cost in costs)
            for option, names in by_option.items()
        },
        waits=(
            _wait("all", [outcome.jobs for outcome in outcomes]),
            *(_wait(team, jobs) for team, jobs in by_team.items()),
        ),
        sizes=tuple(_sizes(outcomes)),
        users=tuple(_users(outcomes)),
        ended=_spread(sum(job.ended is not None for job in outcome.jobs) for outcome in outcomes),
        preemptions=_spread(sum(job.preemptions for job in outcome.jobs) for outcome in outcomes),
        interruptions={
            cause: _spread(sum(job.interruptions[cause] for job in outcome.jobs) for outcome in outcomes)
            for cause in sorted({why for one in outcomes for job in one.jobs for why in job.interruptions})
        },
        lost_hours=_spread(sum(job.lost for job in outcome.jobs) / _HOUR for outcome in outcomes),
        deadlines=sum(job.work.job.deadline is not None for job in first.jobs),
        missed=_spread(sum(job.missed for job in outcome.jobs) for outcome in outcomes),
        never=tuple(_never(first)),
        series=tuple(_series(first, costs[0], until)),
    )


def _commitments(
    declaration: Declaration, costs: Sequence[Ledger], until: float
) -> Iterator[CommitmentReport]:
    hours = max(until, 1.0) / _HOUR
    for index, commitment in enumerate(declaration.rates.commitments):
        uses = [cost.commitments[index] for cost in costs]
        yield CommitmentReport(
            item=commitment.item,
            used=_spread(use.used / (hours * max(commitment.count, 1)) for use in uses),
            last=_spread(use.last / hours for use in uses),
            more=_spread(use.more / hours for use in uses),
            pays_above=commitment.pays_above,
        )


def _wait(group: str, jobs: Sequence[Iterable[JobOutcome]]) -> WaitReport:
    """Return the waiting times of a group; one list of jobs for each seed."""
    found = [waits(one) for one in jobs]
    if not all(found):
        return WaitReport(group=group, jobs=len(found[0]), mean=None, half=None, most=None)
    return WaitReport(
        group=group,
        jobs=len(found[0]),
        mean=_spread(map(fmean, found)),
        half=_spread(quantile(values, 0.5) or 0.0 for values in found),
        most=_spread(quantile(values, 0.95) or 0.0 for values in found),
    )


def _sizes(outcomes: Sequence[Outcome]) -> Iterator[WaitReport]:
    by_size: dict[str, list[list[JobOutcome]]] = {}
    order: dict[str, tuple[bool, int]] = {}
    for number, outcome in enumerate(outcomes):
        for size, job in sizes(outcome.jobs):
            by_size.setdefault(size, [[] for _ in outcomes])[number].append(job)
            order[size] = "GPU" in size, int(size.split()[0])
    for size in sorted(by_size, key=lambda name: order[name]):
        yield _wait(size, by_size[size])


def _users(outcomes: Sequence[Outcome]) -> Iterator[WaitReport]:
    """Yield the waiting times of the users with the most jobs."""
    counts = Counter(job.work.job.user for job in outcomes[0].jobs if job.work.job.user)
    for user, _ in counts.most_common(_USERS):
        yield _wait(user, [[job for job in one.jobs if job.work.job.user == user] for one in outcomes])


def _never(outcome: Outcome) -> Iterator[NeverReport]:
    counts = Counter(job.why_not for job in outcome.jobs if job.why_not)
    for why, count in counts.most_common():
        lines = (job.work.job.line for job in outcome.jobs if job.why_not == why)
        yield NeverReport(why=why, jobs=count, lines=tuple(sorted(lines)[:_LINES]))


def _series(outcome: Outcome, costs: Ledger, until: float) -> Iterator[SeriesReport]:
    for pool in outcome.declaration.pools:
        nodes = outcome.nodes(pool.name)
        if any(count for _, count in nodes):
            yield SeriesReport(
                title=pool.name,
                kind="nodes",
                points=_points(nodes, until),
                reclaims=tuple(outcome.reclaims.get(pool.name, ())[:_POINTS]),
                refusals=tuple(outcome.refusals.get(pool.name, ())[:_POINTS]),
            )
    yield SeriesReport(title="waiting jobs", kind="jobs", points=_points(outcome.waiting(), until))
    money = [(at, usd) for at, usd, _ in costs.total]
    yield SeriesReport(title="$ so far", kind="money", points=_points(money, until))


def _points(series: Sequence[tuple[float, float]], until: float) -> tuple[tuple[float, float], ...]:
    points = thinned(series, _POINTS, until)
    return tuple((round(at, 1), round(value, 4)) for at, value in points)


def verdict(declarations: Sequence[Declaration], reports: Sequence[ColumnReport], jobs: int) -> Iterator[str]:
    """Yield the result in sentences: with two clusters, the change and its effect come first.

    Args:
        declarations: the clusters, the earlier one first.
        reports: the outcome of each.
        jobs: number of jobs of the trace.
    """
    if len(declarations) > 1:
        old, new = declarations[:2]
        changes = list(_changes(old, new))
        if not changes:
            same = old.cluster.model_copy(update={"name": new.name}) == new.cluster
            changes = ["the same declaration" if same else "other settings alone"]
        yield f"With {and_list(changes)}: {_compared(jobs, *reports[:2])}."
    for declaration, report in zip(declarations, reports, strict=True):
        yield from _alone(declaration, report, jobs, named=len(declarations) > 1)


def _changes(old: Declaration, new: Declaration) -> Iterator[str]:
    """Yield the differences of two declarations that decide about nodes and queues."""
    before, after = ({pool.name: pool for pool in one.pools} for one in (old, new))
    for name, pool in after.items():
        if name not in before:
            yield f"pool {name} added"
            continue
        was = before[name]
        if pool.maximum != was.maximum:
            yield f"{pool.maximum} {name} nodes instead of {was.maximum}"
        if pool.minimum != was.minimum:
            yield f"at least {pool.minimum} {name} nodes instead of {was.minimum}"
        for one, other in ((pool.capacity, was.capacity), (pool.machine, was.machine)):
            if one != other:
                yield f"{name} as {one} instead of {other}"
        if pool.accelerator != was.accelerator and pool.machine == was.machine:
            kinds = (f"{p.accelerator[1]} {p.accelerator[0]}" if p.accelerator else "no" for p in (pool, was))
            yield f"{name} with {' instead of '.join(kinds)} accelerators"
    yield from (f"pool {name} removed" for name in before if name not in after)
    if _queues(old, whole=before == after) != _queues(new, whole=before == after):
        yield "other queues or quotas"


def _queues(declaration: Declaration, *, whole: bool) -> list[object]:
    """Return the objects of queues; their names alone where quotas follow from changed nodes."""
    kinds = ("ClusterQueue", "Cohort", "LocalQueue")
    objects = [item for item in declaration.cluster.objects if item["kind"] in kinds]
    return [item if whole else (item["kind"], item["metadata"]["name"]) for item in objects]


def _compared(jobs: int, old: ColumnReport, new: ColumnReport) -> str:
    """Return the work that one of them has not done, then the change of waiting and cost, in words."""
    old_wait, new_wait = old.waits[0].mean, new.waits[0].mean
    waiting = _change(old_wait, new_wait, "waiting") if old_wait and new_wait else "no waiting to compare"
    done = [
        f"{after:,} of {whole:,} {what} {f'instead of {before:,}' if after != before else 'in both'}"
        for what, whole, before, after in (
            ("jobs ended", jobs, round(old.ended.median), round(new.ended.median)),
            ("deadlines met", old.deadlines, *(c.deadlines - round(c.missed.median) for c in (old, new))),
        )
        if min(before, after) < whole
    ]
    cost = _change(old.usd, new.usd, "cost") if _priced(old) and _priced(new) else "no cost to compare"
    return ", ".join((*done, waiting, cost))


def _priced(report: ColumnReport) -> bool:
    """Return whether the price of all nodes that there were is known."""
    return all(pool.usd is not None for pool in report.pools)


def _change(old: Spread, new: Spread, what: str) -> str:
    share = (new.median - old.median) / old.median if old.median else 0.0
    if abs(share) < _CLEAR:
        return f"the same {what}"
    words = f"{abs(share):.0%}".replace("%", " %") + f" {'more' if share > 0 else 'less'} {what}"
    overlap = old.least <= new.most and new.least <= old.most
    return f"{words} (the seeds differ by as much)" if overlap and old.least != old.most else words


def _alone(declaration: Declaration, report: ColumnReport, jobs: int, *, named: bool) -> Iterator[str]:
    wait = report.waits[0]
    undone = list(_undone(jobs, report))
    who = "those that ran" if undone else "the jobs"
    waited = (
        f"half of {who} waited up to {durations.elapsed(wait.half.median)}, 95 % up to "
        f"{durations.elapsed(wait.most.median)}"
        if wait.half and wait.most
        else "no job ran"
    )
    cost = f"{bound(declaration.without_price, declaration.cluster.estimated)}${report.usd.median:,.2f}"
    queued = {pool for queue in declaration.queues.values() for pool in queue.pools}
    work = [pool for pool in report.pools if pool.pool in queued]
    hours, idle = (sum(getattr(pool, key).median for pool in work) for key in ("node_hours", "idle_hours"))
    share = f", {idle / hours:.0%}".replace("%", " %") + " of its queues' node hours idle" if hours else ""
    yield _sentence(report, f"{'; '.join((*undone, waited))}; {cost}{share}", named=named)
    if repeated := _repeated(report):
        yield _sentence(report, repeated, named=named)
    for commitment in report.commitments:
        yield _sentence(report, _committed(commitment), named=named)


def _sentence(report: ColumnReport, words: str, *, named: bool) -> str:
    return f"{report.name}: {words}." if named else f"{words[0].upper()}{words[1:]}."


def _undone(jobs: int, report: ColumnReport) -> Iterator[str]:
    """Yield the work that was not done."""
    if lost := round(jobs - report.ended.median):
        yield f"{lost:,} of {several(jobs, 'job')} never ended"
    if missed := round(report.missed.median):
        yield f"{missed:,} of {several(report.deadlines, 'deadline')} missed"


def _committed(commitment: CommitmentReport) -> str:
    """Return which part of a commitment was used, and if one more or less would have cost less."""
    used = f"{commitment.item} used {commitment.used.median * 100:.0f} %"
    least = commitment.pays_above
    if least is None:
        return f"{used}, of no pool with a known price"
    words = f"{used}, and one pays above {least * 100:.0f} %"
    if commitment.more.median > least:
        return f"{words}: one more would cost less, used {commitment.more.median * 100:.0f} % of the time"
    if commitment.last.median < least:
        return f"{words}: one less would cost less, as the last is used {commitment.last.median * 100:.0f} %"
    return f"{words}: neither one more nor one less would cost less"


def _repeated(report: ColumnReport) -> str:
    """Return how much work was repeated, why, and what avoids it; empty for less than an hour."""
    if report.lost_hours.median < 1:
        return ""
    spreads = {"preemption": report.preemptions, **report.interruptions}
    counts = {cause: round(spread.median) for cause, spread in spreads.items()}
    causes = [several(count, *_CAUSES[cause]) for cause, count in counts.items() if count]
    after = f" after {and_list(causes)}" if causes else ""
    advised = counts.get("scale-down", 0) > 0
    advice = "; --keep-node (keep_node in a trace) lets no scale-down end a job" if advised else ""
    return f"{several(f'{report.lost_hours.median:,.0f}', 'hour')} of work repeated{after}{advice}"
