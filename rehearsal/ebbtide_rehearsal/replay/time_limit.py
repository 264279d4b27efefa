"""A replay within a time limit, for a review: of the first jobs of a trace, if all of them take longer."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from ebbtide.analysis.review.report import ReplayColumn, ReplaySummary
from ebbtide.text import and_list, several
from ebbtide.values import durations
from ebbtide_rehearsal.replay.cloud_model import CloudModel, Recorded
from ebbtide_rehearsal.replay.compare import replay as replay_all
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.document import ColumnReport, ReplayReport
from ebbtide_rehearsal.replay.mapping import Table
from ebbtide_rehearsal.replay.scheduler import Decision, Forwarding, Scheduler, Schedulers
from ebbtide_rehearsal.replay.trace import Trace

SECONDS: Final = 60.0
"""Time limit of a review's replays."""

_FIRST: Final = 250
"""Number of jobs that are replayed first, to measure the time of more."""
_STEP: Final = 8
"""Largest factor from one number of jobs to the next."""
_SEEDS: Final = 3
_MARGIN: Final = 1.5
"""Factor of the expected time of more jobs: waiting ones make each decision longer."""


class _TimeIsUpError(Exception):
    """The time limit has passed."""


class _Limited(Forwarding):
    """A scheduler that ends with a time limit."""

    def __init__(self, scheduler: Scheduler, is_over: Callable[[], bool]) -> None:
        super().__init__(scheduler)
        self._is_over = is_over

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Decide, unless the time is up."""
        if self._is_over():
            raise _TimeIsUpError
        return self._scheduler.step(at, before)


def summarize(
    trace: Trace,
    declarations: Sequence[Declaration],
    table: Table,
    model: tuple[CloudModel, Recorded],
    schedulers: Schedulers,
    *,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> ReplaySummary:
    """Replay as many of a trace's first jobs as a time limit allows.

    Args:
        trace: the trace, without faults for any of the declarations.
        declarations: the declarations, the earlier one first.
        table: names of the trace as names of the declarations.
        model: the cloud's model, and the recorded stock that it names.
        schedulers: starts the scheduler.
        seconds: the time limit.
        clock: the current time in seconds.
    """
    end = clock() + seconds

    @contextmanager
    def limited(declaration: Declaration) -> Generator[Scheduler]:
        with schedulers(declaration) as scheduler:
            yield _Limited(scheduler, lambda: clock() > end)

    report: ReplayReport | None = None
    count = min(_FIRST, len(trace.jobs))
    while report is None or report.jobs < count:
        part, began = replace(trace, jobs=trace.jobs[:count]), clock()
        try:
            report = replay_all(part, declarations, table, model, limited, seeds=_SEEDS, varied=False)
        except _TimeIsUpError:
            break
        possible = int(count * (end - clock()) / max(1e-3, clock() - began) / _MARGIN)
        count = max(count, min(len(trace.jobs), _STEP * count, possible))
    if report is None:
        jobs = several(count, "job")
        problem = f"The first {jobs} of {trace.file} take more than {seconds:.0f} s to replay."
        return ReplaySummary.failed(trace.file, problem)
    return _summary(trace, report, seconds)


def _summary(trace: Trace, report: ReplayReport, seconds: float) -> ReplaySummary:
    return ReplaySummary(
        trace=trace.file,
        jobs=len(trace.jobs),
        replayed=report.jobs,
        seeds=report.seeds,
        verdict=report.verdict[0],
        columns=tuple(map(_column, report.columns)),
        notes=tuple(_notes(trace, report, seconds)),
        problem="",
    )


def _notes(trace: Trace, report: ReplayReport, seconds: float) -> Iterator[str]:
    if report.jobs < len(trace.jobs):
        part, whole = (durations.rounded(span) for span in (report.seconds, trace.jobs[-1].submit))
        yield (
            f"The first {report.jobs:,} of {len(trace.jobs):,} jobs ({part} of {whole}) were replayed: all "
            f"of them take more than {seconds:.0f} s. `ebbtide replay` has no limit."
        )
    versions: dict[tuple[str, int, tuple[int, ...]], list[str]] = {}
    for column in report.columns:
        for never in column.never:
            versions.setdefault((never.why, never.jobs, never.lines), []).append(column.name)
    for (why, jobs, lines), names in versions.items():
        where = f"line {', '.join(map(str, lines))}"
        yield f"{and_list(names)}: {several(jobs, 'job')} never ended: {why} ({where})."


def _column(column: ColumnReport) -> ReplayColumn:
    every = column.waits[0]
    return ReplayColumn(
        name=column.name,
        usd=column.usd.median,
        half_waited=every.half.median if every.half else None,
        most_waited=every.most.median if every.most else None,
        node_hours=sum(pool.node_hours.median for pool in column.pools),
        idle_hours=sum(pool.idle_hours.median for pool in column.pools),
        ended=column.ended.median,
        preemptions=column.preemptions.median,
        interruptions=sum(spread.median for spread in column.interruptions.values()),
        deadlines=column.deadlines,
        missed=column.missed.median,
    )
