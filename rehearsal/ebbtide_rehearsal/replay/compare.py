"""Replays of a trace on one or two declarations, and their report."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from statistics import fmean, median
from typing import Final, TypeAlias

from ebbtide.text import and_list, bound, several
from ebbtide.values import durations
from ebbtide_rehearsal.replay.cloud_model import Cloud, CloudModel, Recorded, assumptions
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.document import (
    AssumptionReport,
    ColumnReport,
    MappingReport,
    NeverReport,
    PoolReport,
    ReplayReport,
    SeriesReport,
    ShapeReport,
    Spread,
    WaitReport,
)
from ebbtide_rehearsal.replay.mapping import Mapped, Mapper, Table, Work
from ebbtide_rehearsal.replay.scheduler import Schedulers
from ebbtide_rehearsal.replay.simulation import JobOutcome, Outcome, quantile, simulate, sizes, thinned, waits
from ebbtide_rehearsal.replay.trace import Trace
from ebbtide_rehearsal.report.cost import Ledger

MOST_FOR_ASSUMPTIONS: Final = 5000
"""Largest number of jobs that is replayed again for each assumption."""

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

OnReplay: TypeAlias = Callable[[str], None]
"""Called with the name of each replay before it begins."""


@dataclass(frozen=True, slots=True)
class _Column:
    """The outcomes of a declaration, one for each seed, with their costs."""

    declaration: Declaration
    mapped: Mapped
    outcomes: Sequence[Outcome]


def replay(
    trace: Trace,
    declarations: Sequence[Declaration],
    table: Table,
    model: tuple[CloudModel, Recorded],
    schedulers: Schedulers,
    *,
    seeds: int,
    varied: bool = True,
    on_replay: OnReplay = lambda _: None,
) -> ReplayReport:
    """Replay a trace on each declaration.

    Args:
        trace: the trace, without faults for any of the declarations.
        declarations: the declarations, the earlier one first.
        table: names of the trace as names of the declarations.
        model: the cloud's model, and the recorded stock that it names.
        schedulers: starts the scheduler.
        seeds: number of replays of each declaration.
        varied: whether each assumption of the model is also replayed with half and twice of it.
        on_replay: called before each replay.
    """

    def outcome(declaration: Declaration, mapped: Mapped, seed: int, cloud_model: CloudModel) -> Outcome:
        with schedulers(declaration) as scheduler:
            cloud = Cloud(cloud_model, model[1], seed, trace.midnight)
            return simulate(declaration, _in_order(mapped.work, seed), scheduler, cloud)

    columns: list[_Column] = []
    for declaration in declarations:
        mapped = Mapper(declaration, table, own=trace.format == "csv").mapped(trace)
        outcomes: list[Outcome] = []
        for seed in range(1, seeds + 1):
            on_replay(f"{declaration.name}, seed {seed} of {seeds}")
            outcomes.append(outcome(declaration, mapped, seed, model[0]))
        columns.append(_Column(declaration, mapped, outcomes))
    until = max(one.end for column in columns for one in column.outcomes)
    last = columns[-1]
    effects: list[AssumptionReport] = []
    for factor in (0.5, 2.0) if varied and len(trace.jobs) <= MOST_FOR_ASSUMPTIONS else ():
        for name, changed in assumptions(model[0], factor).items():
            if changed != model[0] and _matters(name, last.declaration):
                on_replay(f"{last.declaration.name}, {factor:g} times the {name}")
                other = outcome(last.declaration, last.mapped, 1, changed)
                effects.append(_effect(name, factor, last.outcomes[0], other, until))
    return _report(trace, columns, until, sorted(effects, key=lambda effect: effect.name))


def _in_order(work: Sequence[Work], seed: int) -> Sequence[Work]:
    """Return the jobs in the order of their submission: those of the same time in the trace's order with the
    first seed, and in a drawn one with each other."""
    if seed == 1:
        return work
    random = Random(seed)  # noqa: S311 - a simulation
    groups = (list(group) for _, group in groupby(work, lambda one: one.job.submit))
    return [one for group in groups for one in random.sample(group, len(group))]


def _matters(name: str, declaration: Declaration) -> bool:
    """Return whether an assumption applies to a declaration's pools."""
    kinds = {pool.capacity for pool in declaration.pools}
    match name:
        case "rate of reclaims":
            return bool(kinds & {"spot", "preemptible"})
        case "wait for queued nodes":
            return "queued" in kinds
        case _:
            return True


def _effect(name: str, factor: float, base: Outcome, other: Outcome, until: float) -> AssumptionReport:
    def ratio(after: float, before: float) -> float | None:
        return after / before if before else None

    usd = ratio(_total(other.costs(max(until, other.end))), _total(base.costs(until)))
    return AssumptionReport(
        name=name, factor=factor, usd=usd, wait=ratio(_mean(waits(other.jobs)), _mean(waits(base.jobs)))
    )


def _total(costs: Ledger) -> float:
    return sum(costs.pools.values()) + sum(costs.others.values())


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _spread(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(median=median(found), least=min(found), most=max(found))


def _report(
    trace: Trace, columns: Sequence[_Column], until: float, effects: Sequence[AssumptionReport]
) -> ReplayReport:
    reports = tuple(_column(column, until) for column in columns)
    mapped = columns[0].mapped
    notes = list(trace.notes)
    if mapped.rounded_pods:
        jobs = several(mapped.rounded_pods, "job")
        notes.append(f"The GPUs of {jobs} were rounded up to equal pods.")
    if not effects:
        notes.append(
            f"Assumptions are varied for up to {MOST_FOR_ASSUMPTIONS:,} jobs: replay a part of the trace."
        )
    rates = [column.declaration.rates for column in columns]
    return ReplayReport(
        trace=trace.file,
        format=trace.format,
        jobs=len(trace.jobs),
        seconds=trace.jobs[-1].submit,
        until=until,
        notes=tuple(notes),
        mapping=tuple(
            MappingReport(queue=queue, gpu_type=gpu_type, local_queue=local_queue, jobs=jobs)
            for (queue, gpu_type, local_queue), jobs in mapped.rows.items()
        ),
        shapes=tuple(_shapes(mapped)),
        seeds=len(columns[0].outcomes),
        verdict=tuple(_verdict(columns, reports)),
        columns=reports,
        assumptions=tuple(effects),
        without_price=tuple(dict.fromkeys(item for rate in rates for item in rate.unknown)),
        estimated=tuple(dict.fromkeys(item for rate in rates for item in rate.estimated)),
    )


def _shapes(mapped: Mapped) -> Iterator[ShapeReport]:
    rows = list(mapped.shapes.items())
    for (requests, pods), jobs in rows[:_SHAPES]:
        yield ShapeReport(requests=requests, pods=pods, jobs=jobs)
    if others := rows[_SHAPES:]:
        jobs = sum(jobs for _, jobs in others)
        yield ShapeReport(requests=f"{len(others):,} others", pods="", jobs=jobs)


def _column(column: _Column, until: float) -> ColumnReport:
    outcomes, declaration = column.outcomes, column.declaration
    first = outcomes[0]
    costs = [outcome.costs(until) for outcome in outcomes]
    hours = [outcome.node_hours(until) for outcome in outcomes]
    teams = sorted({work.queue.team for work in column.mapped.work})
    pools = tuple(
        PoolReport(
            pool=pool.name,
            capacity=pool.capacity,
            machine=pool.machine,
            maximum=pool.maximum,
            usd=_spread(cost.pools.get(pool.name, 0.0) for cost in costs),
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
    return ColumnReport(
        name=declaration.name,
        usd=_spread(map(_total, costs)),
        pools=pools,
        others={item: _spread(cost.others[item] for cost in costs) for item in declaration.rates.by_item},
        teams={team: _spread(outcome.team_usd.get(team, 0.0) for outcome in outcomes) for team in teams},
        options={
            option: _spread(
                sum(cost.pools.get(pool.name, 0.0) for pool in declaration.pools if pool.capacity == option)
                for cost in costs
            )
            for option in dict.fromkeys(pool.capacity for pool in declaration.pools)
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


# The verdict


def _verdict(columns: Sequence[_Column], reports: Sequence[ColumnReport]) -> Iterator[str]:
    if len(columns) > 1:
        old, new = (column.declaration for column in columns[:2])
        changes = list(_changes(old, new))
        if not changes:
            same = replace(old, name=new.name, rates=new.rates) == new and _charges(old) == _charges(new)
            changes = ["the same declaration" if same else "other settings alone"]
        yield f"With {and_list(changes)}: {_compared(len(columns[0].mapped.work), *reports)}."
    for column, report in zip(columns, reports, strict=True):
        yield from _alone(column, report, named=len(columns) > 1)


def _charges(declaration: Declaration) -> dict[str, float]:
    """Return the charges besides nodes with one node, by item: rates are functions of the nodes."""
    return {item: rate(1) for item, rate in declaration.rates.by_item.items()}


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
    objects = [item for item in declaration.objects if item["kind"] in kinds]
    return [item if whole else (item["kind"], item["metadata"]["name"]) for item in objects]


def _compared(jobs: int, old: ColumnReport, new: ColumnReport) -> str:
    """Return the work that one of them has not done, then the change of waiting and cost, in words."""
    old_wait, new_wait = old.waits[0].mean, new.waits[0].mean
    waiting = _change(old_wait, new_wait, "waiting") if old_wait and new_wait else "no waiting to compare"
    done = [
        f"{after:,} of {whole} {what} {f'instead of {before:,}' if after != before else 'in both'}"
        for what, whole, before, after in (
            ("jobs ended", jobs, round(old.ended.median), round(new.ended.median)),
            ("deadlines met", old.deadlines, *(c.deadlines - round(c.missed.median) for c in (old, new))),
        )
        if min(before, after) < whole
    ]
    return ", ".join((*done, waiting, _change(old.usd, new.usd, "cost")))


def _change(old: Spread, new: Spread, what: str) -> str:
    share = (new.median - old.median) / old.median if old.median else 0.0
    if abs(share) < _CLEAR:
        return f"the same {what}"
    words = f"{abs(share):.0%}".replace("%", " %") + f" {'more' if share > 0 else 'less'} {what}"
    overlap = old.least <= new.most and new.least <= old.most
    return f"{words} (the seeds differ by as much)" if overlap and old.least != old.most else words


def _alone(column: _Column, report: ColumnReport, *, named: bool) -> Iterator[str]:
    wait, jobs = report.waits[0], len(column.mapped.work)
    rates = column.declaration.rates
    undone = list(_undone(jobs, report))
    who = "those that ran" if undone else "the jobs"
    waited = (
        f"half of {who} waited up to {durations.elapsed(wait.half.median)}, 95 % up to "
        f"{durations.elapsed(wait.most.median)}"
        if wait.half and wait.most
        else "no job ran"
    )
    cost = f"{bound(rates.unknown, rates.estimated)}${report.usd.median:,.2f}"
    queued = {pool for queue in column.declaration.queues.values() for pool in queue.pools}
    work = [pool for pool in report.pools if pool.pool in queued]
    hours, idle = (sum(getattr(pool, key).median for pool in work) for key in ("node_hours", "idle_hours"))
    share = f", {idle / hours:.0%}".replace("%", " %") + " of its queues' node hours idle" if hours else ""
    yield _sentence(report, f"{'; '.join((*undone, waited))}; {cost}{share}", named=named)
    if repeated := _repeated(report):
        yield _sentence(report, repeated, named=named)


def _sentence(report: ColumnReport, words: str, *, named: bool) -> str:
    return f"{report.name}: {words}." if named else f"{words[0].upper()}{words[1:]}."


def _undone(jobs: int, report: ColumnReport) -> Iterator[str]:
    """Yield the work that was not done."""
    if lost := round(jobs - report.ended.median):
        yield f"{lost:,} of {several(f'{jobs:,}', 'job')} never ended"
    if missed := round(report.missed.median):
        yield f"{missed:,} of {several(report.deadlines, 'deadline')} missed"


def _repeated(report: ColumnReport) -> str:
    """Return how much work was repeated, why, and what avoids it; empty for less than an hour."""
    if report.lost_hours.median < 1:
        return ""
    spreads = {"preemption": report.preemptions, **report.interruptions}
    counts = {cause: round(spread.median) for cause, spread in spreads.items()}
    causes = [several(f"{count:,}", *_CAUSES[cause]) for cause, count in counts.items() if count]
    after = f" after {and_list(causes)}" if causes else ""
    advised = counts.get("scale-down", 0) > 0
    advice = "; --keep-node (keep_node in a trace) lets no scale-down end a job" if advised else ""
    return f"{several(f'{report.lost_hours.median:,.0f}', 'hour')} of work repeated{after}{advice}"
