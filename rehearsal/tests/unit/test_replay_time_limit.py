"""Replays within a time limit: all of a trace, its first jobs, or none."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count

from ebbtide.analysis.review.report import ReplaySummary
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.mapping import Table
from ebbtide_rehearsal.replay.scheduler import Scheduler
from ebbtide_rehearsal.replay.time_limit import summarize
from ebbtide_rehearsal.replay.trace import Trace, TraceJob
from rehearsal.tests.unit.replays import FirstIn, a_declaration, a_model


@contextmanager
def _first_in(declaration: Declaration) -> Generator[Scheduler]:
    yield FirstIn(declaration)


def _summary(jobs: int, ticks: Iterator[int], *more: TraceJob) -> ReplaySummary:
    """Replay jobs on two declarations, with a clock that advances with each decision."""
    each = [
        TraceJob(n + 2, "", 3600.0 * n, 600.0, pods=1, gpus=1, gpu_type="", queue="vision/t4")
        for n in range(jobs)
    ]
    trace = Trace("jobs.csv", "csv", [*each, *more], 0.0)
    declarations = a_declaration("main"), a_declaration("dev", maximum=4)
    return summarize(
        trace,
        declarations,
        Table(),
        (a_model(), {}),
        _first_in,
        seconds=60,
        clock=lambda: next(ticks) / 1000,
    )


def test_a_small_trace_is_replayed_whole() -> None:
    """Both declarations have a column; what never ended has its reason."""
    large = TraceJob(99, "", 1e6, 60.0, pods=64, gpus=4, queue="vision/t4")
    summary = _summary(20, iter(count()), large)
    assert (summary.jobs, summary.replayed, summary.problem) == (21, 21, "")
    assert [column.name for column in summary.columns] == ["main", "dev"]
    assert [column.ended for column in summary.columns] == [20, 20]
    assert summary.verdict.startswith("With 4 t4 nodes instead of 2: ")
    assert summary.notes[0].startswith("main and dev: 1 job never ended: its pods exceed the most nodes")


def test_a_large_trace_is_cut() -> None:
    """The first jobs that the time allows are replayed, and the note has their number and period."""
    summary = _summary(3000, iter(count()))
    assert 250 <= summary.replayed < 3000
    assert summary.columns[0].ended == summary.replayed
    (note,) = summary.notes
    assert note.startswith(f"The first {summary.replayed:,} of 3,000 jobs (")
    assert note.endswith("take more than 60 s. `ebbtide replay` has no limit.")


def test_nothing_is_replayed_without_time() -> None:
    """One sentence, and no columns."""
    summary = _summary(3000, iter(count(step=20_000)))
    assert summary.problem == "The first 250 jobs of jobs.csv take more than 60 s to replay."
    assert summary.columns == ()
