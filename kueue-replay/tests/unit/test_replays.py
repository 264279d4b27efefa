"""Replays of one or two clusters: the request, the result, and its report as JSON, text and page."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from rich.console import Console

from ebbtide.analysis.review.review_document import ReplaySummary
from ebbtide.cli.review import replay_summary
from first_in import a_cluster, a_model, a_request, first_in, replayed
from kueue_replay import Replay, render
from kueue_replay.cluster import Charge, Cluster, Commitment, CommitmentUse
from kueue_replay.replays import RequestError, TimeLimitError
from kueue_replay.report import ReplayReport
from kueue_replay.trace import TraceJob

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


def report(*clusters: Cluster, seeds: int = 3) -> ReplayReport:
    """Replay the jobs on clusters."""
    return replayed(jobs(), *clusters, cloud_model=a_model(**_RECLAIMED), seeds=seeds, vary=True).report()


@pytest.fixture(scope="module")
def compared() -> ReplayReport:
    """Two T4 nodes, and four."""
    return report(a_cluster("main"), a_cluster("dev", maximum=4))


def test_the_same_declaration_is_no_change() -> None:
    """A file that is compared with itself, and a declaration whose costs beside nodes alone differ."""
    paid = {"charges": (Charge(item="control plane", hourly=0.1),)}
    main, dev = (a_cluster(name).model_copy(update=paid) for name in ("main", "dev"))
    assert report(main, dev, seeds=1).verdict[0].startswith("With the same declaration: ")
    for change in ({"namespaces": {"vision": {"tier": "gold"}}}, {"charges": ()}):
        other = dev.model_copy(update=change)
        assert report(main, other, seeds=1).verdict[0].startswith("With other settings alone: ")


def text(shown: ReplayReport, width: int = 80) -> str:
    """Render a report for a terminal."""
    output = io.StringIO()
    render.write(shown, Console(file=output, width=width))
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
    assert replayed(rows).report().verdict[-1] == (
        "1 hour of work repeated after 1 scale-down; --keep-node (keep_node in a trace) lets no scale-down "
        "end a job."
    )


def test_no_work_at_all_is_said_first() -> None:
    """A declaration whose nodes are too small for every job has no waiting to compare."""
    rows = jobs()[:30] * 34
    verdict = replayed(rows, a_cluster("main"), a_cluster("dev", maximum=0)).report().verdict
    assert verdict[0].startswith(
        "With 0 t4 nodes instead of 2: 0 of 1,020 jobs ended instead of 1,020, "
        "0 of 1,020 deadlines met instead of 2, no waiting to compare, "
    )
    assert verdict[-1].startswith(
        "dev: 1,020 of 1,020 jobs never ended; 1,020 of 1,020 deadlines missed; no job ran"
    )


def test_jobs_of_one_time_are_submitted_in_an_order_of_each_seed() -> None:
    """The first seed has the trace's order, others draw one: the range of waiting is of both."""
    same = [
        TraceJob(n + 2, "", 0.0, 60.0 * (1 + n % 7), pods=1, gpus=4, queue="vision/t4") for n in range(40)
    ]
    (column,) = replayed(same, seeds=3).report().columns
    mean = column.waits[0].mean
    assert mean
    assert mean.least < mean.most


def test_columns_have_cost_waiting_and_work(compared: ReplayReport) -> None:
    """The costs of pools and options add up, and teams use at most what is paid."""
    for column in compared.columns:
        pools = sum(pool.usd.median for pool in column.pools if pool.usd)
        options = [option.median for option in column.options.values() if option]
        assert sum(options) == pytest.approx(pools, rel=0.1)
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
    again = report(a_cluster("main"), a_cluster("dev", maximum=4))
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
    one = report(a_cluster(), seeds=1)
    assert one.verdict[0].startswith("1 of 40 jobs never ended; 28 of 30 deadlines missed; half of those ")
    assert "of its queues' node hours idle." in one.verdict[0]
    assert "<h3>" not in render.render(one)


# Prices that are not known


def test_an_unknown_price_is_neither_free_nor_preferred() -> None:
    """The autoscaler takes the pool whose price is known; nodes of the other one make the cost unknown."""
    cluster = a_cluster()
    t4, *others = cluster.pools
    twin = t4.model_copy(update={"name": "a-twin", "hourly": None})
    job = TraceJob(1, "", 0.0, 600.0, pods=1, gpus=4, queue="vision/t4")
    (replay,) = replayed([job], cluster.model_copy(update={"pools": (twin, *cluster.pools)})).replays()
    assert [node.pool for node in replay.nodes] == ["t4"]
    assert replay.usd["a-twin"] == 0
    unpriced = cluster.model_copy(update={"pools": (t4.model_copy(update={"hourly": None}), *others)})
    shown = replayed([job], cluster, unpriced).report()
    assert shown.columns[1].pools[0].usd is None
    assert shown.columns[1].options["spot"] is None
    assert "no cost to compare" in shown.verdict[0]
    assert "at least $0.00" in shown.verdict[-1]
    assert shown.without_price == ("nodes of pool t4",)
    assert "unknown" in text(shown)


# The door


def test_a_request_is_json() -> None:
    """A request and its result are JSON: when each job starts and ends, on which nodes, at which cost."""
    request = a_request([TraceJob(1, "a", 0.0, 3600.0, pods=1, gpus=4, queue="vision/t4")])
    read = json.loads(request.model_dump_json(by_alias=True, exclude_unset=True))
    document = json.loads(Replay(read).run(first_in).document().model_dump_json())
    (replay,) = document["replays"]
    (job,), (node,) = replay["jobs"], replay["nodes"]
    assert (job["name"], job["reserved"], job["started"], job["ended"]) == ("a", 0, 100, 3700)
    assert (node["pool"], node["since"], node["until"]) == ("t4", 0, replay["end"])
    assert replay["usd"]["t4"] == pytest.approx(0.5 * replay["end"] / 3600)
    assert document["report"]["jobs"] == 1


@pytest.mark.parametrize(
    ("request_", "faults"),
    [
        (
            {
                "clusters": [
                    {"name": "dev", "pools": [{"name": "t4", "cpu": 0, "memory": "much", "zones": ()}]},
                ],
                "trace": "jobs.csv",
                "starts": "soon",
            },
            [
                (
                    "clusters[0].pools[0].zones: zones is empty. The value is invalid. Write a list here, or "
                    "omit it."
                ),
                "clusters[0].pools[0].cpu: cpu is 0. The request cannot be read. Write 1 or more.",
                (
                    'clusters[0].pools[0].memory: memory is the text "much"; expected a whole number. The '
                    "request cannot be read. Write a whole number here."
                ),
                "clusters[0].pools[0].maximum: maximum is missing. The field is required. Add maximum.",
                (
                    'starts: starts is the text "soon", which is not a time with its time zone. The request '
                    "cannot be read. Write a time such as 2026-12-01T08:00Z, which is UTC."
                ),
            ],
        ),
        (
            {"clusters": [{"name": "dev", "pool": ""}], "trace": "jobs.csv"},
            [
                (
                    "clusters[0].pool: There is no pool here; did you mean pools? The key would have no "
                    "effect. Write pools."
                )
            ],
        ),
        (
            {"clusters": [a_cluster()]},
            ["Either trace or jobs is needed. The request cannot be read. Write exactly one of them."],
        ),
        (
            {"clusters": [a_cluster()], "jobs": [{"gpus": "many"}]},
            [
                "jobs[0].seconds: seconds is missing. The field is required. Add seconds.",
                (
                    'jobs[0].gpus: gpus is the text "many"; expected a whole number. The request cannot be '
                    "read. Write a whole number here, or omit it."
                ),
            ],
        ),
    ],
    ids=["values", "a key", "no jobs", "a job"],
)
def test_faults_of_a_request_are_reported_together(request_: dict[str, Any], faults: list[str]) -> None:
    """Every fault has its place and what to write instead."""
    with pytest.raises(RequestError) as error:
        Replay(request_)
    assert str(error.value).splitlines() == faults


def test_the_program_reports_faults() -> None:
    """Standard error has the faults of a request, and standard output nothing."""
    command = [sys.executable, "-m", "kueue_replay"]
    for written, fault in (("{}", "clusters is missing"), ("x", "is not JSON"), ("[]", "not an object")):
        done = subprocess.run(command, input=written, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert fault in done.stderr


def test_jobs_that_run_already_keep_their_nodes() -> None:
    """The first job has quota and a node at the start, and the second the node that it leaves."""
    first = TraceJob(1, "", 0.0, 50.0, pods=1, gpus=4, queue="vision/t4", admitted=True, started=True)
    second = TraceJob(2, "", 0.0, 50.0, pods=1, gpus=4, queue="vision/t4")
    none = TraceJob(3, "", 0.0, 50.0, pods=1, gpus=4, queue="vision/t5")
    (replay,) = replayed([first, second, none], a_cluster(maximum=1), until_started=(2,)).replays()
    assert [job.started for job in replay.jobs] == [0, 50, None]
    assert replay.jobs[2].why_not.startswith("No queue vision/t5 is declared")
    assert not replay.jobs[2].fits


# Time limit


def _summary(jobs: int, ticks: Iterator[int], *more: TraceJob) -> ReplaySummary:
    """Replay jobs on two clusters within a minute of a clock that advances with each decision."""
    each = [TraceJob(n, "", 3600.0 * n, 600.0, pods=1, gpus=1, queue="vision/t4") for n in range(jobs)]
    limited = a_request([*each, *more], a_cluster("main"), a_cluster("dev", maximum=4), seeds=3, seconds=60)
    return replay_summary(Replay(limited).run(first_in, clock=lambda: next(ticks) / 1000))


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
    """One sentence says so."""
    with pytest.raises(TimeLimitError, match=r"^The first 250 jobs of the request take more than 60 s"):
        _summary(3000, iter(count(step=20_000)))


def test_commitments_are_used_first() -> None:
    """Commitments pay for nodes, and the result tells when one more or one less would cost less."""
    plain = a_cluster("main")
    hourly = next(pool.hourly for pool in plain.pools if pool.name == "t4") or 0.0

    def t4(shown: ReplayReport) -> float:
        return next(pool.usd.median for pool in shown.columns[0].pools if pool.pool == "t4" and pool.usd)

    def committed(count: int, usd: float) -> ReplayReport:
        use = CommitmentUse(units=1, part="machine", hourly=hourly)
        commitment = Commitment(kind="n1-standard-8", count=count, hourly=usd, uses={"t4": use})
        return report(plain.model_copy(update={"commitments": (commitment,)}), seeds=1)

    without, few, many = report(plain, seeds=1), committed(1, hourly / 100), committed(9, hourly * 0.99)
    (own,) = few.columns[0].commitments
    assert own.pays_above == pytest.approx(0.01)
    assert own.used == own.last
    assert t4(without) - t4(few) == pytest.approx(own.used.median * few.until / 3600 * hourly)
    more = f"{own.more.median * 100:.0f} %"
    assert few.verdict[-1].endswith(f"one more would cost less, used {more} of the time.")
    assert t4(many) == pytest.approx(0)
    assert "one less would cost less, as the last is used 0 %" in many.verdict[-1]


_BEGIN = datetime(2026, 12, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize("days_before", [0, 1, 3])
def test_a_reservation_for_a_period(days_before: int) -> None:
    """Work waits for a reservation to begin, which is when a trace without dates starts, and ends at its
    end; the reservation is billed in its period alone, used or not."""
    period: dict[str, Any] = {"begins": _BEGIN, "ends": _BEGIN + timedelta(days=1)}
    reserved = Charge(item="reservation of pool t4", hourly=10, **period)
    cluster = a_cluster(**period).model_copy(update={"charges": (reserved,)})
    jobs = [
        TraceJob(1, "short", 0.0, 3600.0, pods=1, gpus=4, queue="vision/t4"),
        TraceJob(2, "long", 0.0, 36000.0, pods=1, gpus=4, queue="vision/t4"),
        TraceJob(3, "late", days_before * 86400 + 70000.0, 86400.0, pods=1, gpus=4, queue="vision/t4"),
        TraceJob(4, "cpu", 5.0 * 86400, 60.0, pods=1, cpu=1.0, queue="vision/cpu"),
    ]
    start = _BEGIN - timedelta(days=days_before)
    result = replayed(jobs, cluster, **({"starts": start} if days_before else {}))
    (replay,) = result.replays()
    begin = days_before * 86400
    short, long, late, _ = replay.jobs
    for job, seconds in ((short, 3600), (long, 36000)):
        assert begin + 100 <= (job.started or 0.0) <= begin + 1800 + 110
        assert job.ended == pytest.approx((job.started or 0.0) + seconds)
    assert (late.ended, late.interruptions) == (None, {"node expired": 1})
    assert all(
        begin <= node.since and (node.until or 0) <= begin + 86400
        for node in replay.nodes
        if node.pool == "t4"
    )
    assert replay.other_usd["reservation of pool t4"] == pytest.approx(240)
    assert result.report().notes[0].startswith(f"The first job is submitted at {start:%Y-%m-%d} 08:00 UTC")
