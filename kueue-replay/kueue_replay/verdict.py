"""The result of a replay in sentences: the change and its effect, then each cluster for itself."""

from collections.abc import Iterator, Sequence
from typing import Final

from ebbtide.text import and_list, bound, several
from ebbtide.values import durations
from kueue_replay.cluster import Declaration
from kueue_replay.report import ColumnReport, CommitmentReport, Spread

_CLEAR: Final = 0.005
_CAUSES: Final = {
    "preemption": ("preemption",),
    "reclaim": ("reclaim",),
    "scale-down": ("scale-down",),
    "node expired": ("end of a node's run", "ends of nodes' runs"),
    "failure": ("failure",),
}
"""Singular and plural of each cause of an interruption."""


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
