"""The report of a replay: comparison, text, JSON and page."""

import io
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from rich.console import Console

from ebbtide_rehearsal.replay import page, render
from ebbtide_rehearsal.replay.compare import replay
from ebbtide_rehearsal.replay.decisions import Scheduler
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.document import ReplayReport
from ebbtide_rehearsal.replay.mapping import Table
from ebbtide_rehearsal.replay.trace import Trace
from ebbtide_rehearsal.replay.trace_rows import TraceJob
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


def text(report: ReplayReport, width: int = 80) -> str:
    """Render a report for a terminal."""
    output = io.StringIO()
    render.write(report, Console(file=output, width=width))
    return output.getvalue()


def test_the_verdict_names_the_change_and_its_effect(compared: ReplayReport) -> None:
    """More nodes mean less waiting; the sentence has both numbers of nodes."""
    assert compared.verdict[0].startswith("With 4 t4 nodes instead of 2: ")
    assert " % less waiting, " in compared.verdict[0]
    assert compared.verdict[-1] == "dev: 1 of 40 jobs never ended."


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
    written = page.render(compared)
    assert written.index("<h3>main</h3>") < written.index("<h3>dev</h3>")
    assert written.count('class="chart nodes"') == 2 * 2
    assert written.count('class="chart jobs"') == written.count('class="chart money"') == 2
    assert "<script" not in written
    assert 'class="reclaim"' in written


def test_one_declaration_has_one_column() -> None:
    """Without another declaration, the verdict is about waiting, cost and idle nodes."""
    report = replayed(a_declaration(), seeds=1)
    assert report.verdict[0].startswith("Half of the jobs waited up to ")
    assert "of its queues' node hours idle." in report.verdict[0]
    assert "<h3>" not in page.render(report)
