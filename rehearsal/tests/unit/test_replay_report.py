"""The report of a replay: comparison, text, JSON and page."""

import io
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from rich.console import Console

from ebbtide_rehearsal.replay import render
from ebbtide_rehearsal.replay.compare import replay
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.document import ReplayReport
from ebbtide_rehearsal.replay.mapping import Table
from ebbtide_rehearsal.replay.scheduler import Scheduler
from ebbtide_rehearsal.replay.trace import Trace, TraceJob
from ebbtide_rehearsal.report.cost import Rates
from rehearsal.tests.unit.replays import FirstIn, a_declaration, a_model

_RECLAIMED = {
    "startup": {"seconds": 100, "spread": 0.3},
    "reclaims": {"spot": {"perHour": 0.2}},
}


def jobs() -> list[TraceJob]:
    """Forty jobs of two teams, more than two T4 nodes run at once, and one that never fits."""
    trained = [
        TraceJob(
            number + 2,
            f"t{number}",
            300.0 * number,
            5400.0,
            pods=1,
            gpus=4,
            queue="vision/t4",
            deadline=300.0 * number + 10000,
            user="ada",
        )
        for number in range(30)
    ]
    queued = [TraceJob(40 + n, "", 9000.0, 600.0, pods=1, gpus=1, queue="speech/queued") for n in range(9)]
    return [*trained, *queued, TraceJob(50, "big", 9000.0, 60.0, pods=64, gpus=4, queue="vision/t4")]


@contextmanager
def first_in(declaration: Declaration) -> Generator[Scheduler]:
    """Start the first-in, first-out scheduler."""
    yield FirstIn(declaration)


def replayed(*declarations: Declaration, seeds: int = 3) -> ReplayReport:
    """Replay the jobs on declarations."""
    trace = Trace("jobs.csv", "csv", jobs(), 0.0)
    return replay(trace, declarations, Table(), (a_model(**_RECLAIMED), {}), first_in, seeds=seeds)


@pytest.fixture(scope="module")
def compared() -> ReplayReport:
    """Two T4 nodes, and four."""
    return replayed(a_declaration("main"), a_declaration("dev", maximum=4))


def test_the_same_declaration_is_no_change() -> None:
    """A file that is compared with itself, and a declaration whose costs beside nodes alone differ."""
    main, dev = (replace(a_declaration(name), rates=_rates(0.1)) for name in ("main", "dev"))
    assert replayed(main, dev, seeds=1).verdict[0].startswith("With the same declaration: ")
    for other in (replace(dev, namespaces={"vision": {"tier": "gold"}}), replace(dev, rates=_rates(0.2))):
        assert replayed(main, other, seeds=1).verdict[0].startswith("With other settings alone: ")


def _rates(usd: float) -> Rates:
    """Return rates that are functions of their own, as each recording has them."""
    return Rates({"control plane": lambda _: usd})


def text(report: ReplayReport, width: int = 80) -> str:
    """Render a report for a terminal."""
    output = io.StringIO()
    render.write(report, Console(file=output, width=width))
    return output.getvalue()


def test_the_verdict_names_the_change_and_its_effect(compared: ReplayReport) -> None:
    """Work that was not done comes first, then waiting and cost; each declaration has what it repeated."""
    first, old, repeated, *_ = compared.verdict
    assert first.startswith(
        "With 4 t4 nodes instead of 2: 39 of 40 jobs ended in both, 6 of 30 deadlines met instead of 2, "
    )
    assert " % less waiting, " in first
    assert old.startswith(
        "main: 1 of 40 jobs never ended; 28 of 30 deadlines missed; half of those that ran "
    )
    assert repeated == "main: 14 hours of work repeated after 19 reclaims."


def test_the_verdict_names_what_spares_repeated_work() -> None:
    """Work that scale-down interrupts is counted, with the option that avoids it."""
    rows = [
        TraceJob(n, "", at, seconds, pods=1, cpu=1, memory=2.0**30, gpus=gpus, queue="vision/t4")
        for n, (at, seconds, gpus) in enumerate(
            ((0.0, 300.0, 4), (0.0, 5000.0, 4), (500.0, 2e4, 1), (5110.0, 2e4, 2)), start=2
        )
    ]
    trace = Trace("jobs.csv", "csv", rows, 0.0)
    report = replay(trace, [a_declaration()], Table(), (a_model(), {}), first_in, seeds=1)
    assert report.verdict[-1] == (
        "1 hour of work repeated after 1 scale-down; --keep-node (keep_node in a trace) lets no scale-down "
        "end a job."
    )


def test_no_work_at_all_is_said_first() -> None:
    """A declaration whose nodes are too small for every job has no waiting to compare."""
    small = a_declaration("dev", maximum=0)
    trace = Trace("jobs.csv", "csv", jobs()[:30], 0.0)
    report = replay(trace, [a_declaration("main"), small], Table(), (a_model(), {}), first_in, seeds=1)
    assert report.verdict[0].startswith(
        "With 0 t4 nodes instead of 2: 0 of 30 jobs ended instead of 30, 0 of 30 deadlines met instead of 2, "
        "no waiting to compare, "
    )
    assert report.verdict[-1].startswith(
        "dev: 30 of 30 jobs never ended; 30 of 30 deadlines missed; no job ran"
    )


def test_jobs_of_one_time_are_submitted_in_an_order_of_each_seed() -> None:
    """The first seed has the trace's order, others draw one: the range of waiting is of both."""
    same = [
        TraceJob(n + 2, "", 0.0, 60.0 * (1 + n % 7), pods=1, gpus=4, queue="vision/t4") for n in range(40)
    ]
    trace = Trace("jobs.csv", "csv", same, 0.0)
    (column,) = replay(trace, [a_declaration()], Table(), (a_model(), {}), first_in, seeds=3).columns
    mean = column.waits[0].mean
    assert mean
    assert mean.least < mean.most


def test_columns_have_cost_waiting_and_work(compared: ReplayReport) -> None:
    """The costs of pools and options add up, and teams use at most what is paid."""
    for column in compared.columns:
        pools = sum(pool.usd.median for pool in column.pools)
        assert sum(option.median for option in column.options.values()) == pytest.approx(pools, rel=0.1)
        assert sum(team.median for team in column.teams.values()) <= pools
        assert [wait.group for wait in column.waits] == ["all", "speech", "vision"]
        assert [(wait.group, wait.jobs) for wait in column.users] == [("ada", 30)]
        assert [wait.group for wait in column.sizes] == ["1 GPU", "4 to 7 GPUs", "256 to 511 GPUs"]
        assert column.never[0].lines == (50,)
        assert column.deadlines == 30
    old, new = compared.columns
    assert old.waits[0].most
    assert new.waits[0].most
    assert old.waits[0].most.median > new.waits[0].most.median
    assert old.missed.median > new.missed.median


def test_seeds_have_a_spread(compared: ReplayReport) -> None:
    """Three seeds differ where nodes are reclaimed."""
    spread = compared.columns[0].usd
    assert spread.least < spread.most
    assert spread.least <= spread.median <= spread.most


def test_every_assumption_is_varied(compared: ReplayReport) -> None:
    """Half and twice of each assumption that applies; a longer wait for queued nodes is more waiting."""
    effects = {(effect.name, effect.factor): effect for effect in compared.assumptions}
    assert {name for name, _ in effects} == {
        "startup of nodes",
        "delay of scale-down",
        "rate of reclaims",
        "wait for queued nodes",
    }
    half, twice = (effects["wait for queued nodes", factor].wait for factor in (0.5, 2))
    assert half is not None
    assert twice is not None
    assert half < 1 < twice


def test_the_same_input_has_the_same_bytes(compared: ReplayReport) -> None:
    """A second replay is the same document."""
    again = replayed(a_declaration("main"), a_declaration("dev", maximum=4))
    assert again.model_dump_json() == compared.model_dump_json()


def test_text_fits_80_columns(compared: ReplayReport) -> None:
    """Every section is there, and no line is longer than a terminal."""
    written = text(compared)
    assert max(map(len, written.splitlines())) <= 80
    for title, _ in render.sections(compared):
        assert title in written
    assert "its pods exceed the most nodes" in " ".join(written.split())


def test_the_page_has_each_declaration_above_the_other(compared: ReplayReport) -> None:
    """Charts of both declarations have one scale, so that fewer nodes are a lower line."""
    written = render.render(compared)
    assert written.index("<h3>main</h3>") < written.index("<h3>dev</h3>")
    assert written.count('class="chart nodes"') == 2 * 2
    assert written.count("up to 2, on a scale to 4") == 1
    assert written.count('class="chart jobs"') == written.count('class="chart money"') == 2
    assert "<script" not in written
    assert 'class="reclaim"' in written


def test_one_declaration_has_one_column() -> None:
    """Without another declaration, the verdict is about waiting, cost and idle nodes."""
    report = replayed(a_declaration(), seeds=1)
    assert report.verdict[0].startswith("1 of 40 jobs never ended; 28 of 30 deadlines missed; half of those ")
    assert "of its queues' node hours idle." in report.verdict[0]
    assert "<h3>" not in render.render(report)
