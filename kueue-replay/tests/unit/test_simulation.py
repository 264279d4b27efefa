"""Replays: jobs, nodes and cost on a virtual clock."""

from dataclasses import replace as changed
from typing import Any

import pytest

from first_in import a_declaration, a_model, simulated
from kueue_replay.cloud_model import CloudModel
from kueue_replay.simulation import quantile, thinned, waits
from kueue_replay.trace import TraceJob


def a_job(submit: float = 0.0, seconds: float = 3600.0, **fields: Any) -> TraceJob:
    """A job of four GPUs in the queue of the T4 nodes."""
    given: dict[str, Any] = {"pods": 1, "gpus": 4, "queue": "vision/t4"}
    return TraceJob(1, "", submit, seconds, **{**given, **fields})


def test_a_job_waits_for_its_node_and_the_node_for_scale_down() -> None:
    """A node is paid for from its request until ten minutes after its last pod, in rounds of 10 s."""
    outcome = simulated(a_declaration(), a_job())
    (job,) = outcome.jobs
    assert (job.started, job.ended) == (100, 3700)
    assert outcome.end == pytest.approx(3700 + 600, abs=20)
    assert outcome.node_hours(outcome.end)["t4"] == pytest.approx(4310 / 3600, abs=0.01)
    assert outcome.busy_hours["t4"] == 1
    assert outcome.costs(outcome.end).pools["t4"] == pytest.approx(0.5 * 4310 / 3600, abs=0.01)
    assert outcome.team_usd["vision"] == 0.5


def test_a_pod_is_bound_to_the_node_that_is_free_first() -> None:
    """A job for which a node boots starts on the node that another job leaves before."""
    outcome = simulated(a_declaration(), a_job(seconds=30), a_job(80, 30))
    assert [job.started for job in outcome.jobs] == [100, 130]
    assert max(count for _, count in outcome.nodes("t4")) == 2


def test_an_expected_node_is_there_for_the_next_job() -> None:
    """A third job needs no third node: the second one's, which boots, is not needed any more."""
    outcome = simulated(a_declaration(maximum=3), a_job(seconds=30), a_job(80, 3600), a_job(135, 3600))
    assert [job.started for job in outcome.jobs] == [100, 130, 180]
    assert max(count for _, count in outcome.nodes("t4")) == 2


def test_jobs_share_a_node_and_wait_for_quota() -> None:
    """Two jobs of two GPUs share the only node; a third starts on it when one of them has ended."""
    outcome = simulated(a_declaration(maximum=1), *(a_job(gpus=2, cpu=1, memory=2**30) for _ in range(3)))
    assert [job.started for job in outcome.jobs] == [100, 100, 3700]
    assert outcome.nodes("t4") == [(0, 0), (0, 1), (outcome.end, 0)]
    assert max(waiting for _, waiting in outcome.waiting()) == 3


@pytest.mark.parametrize("keep_node", [False, True])
def test_a_scale_down_interrupts_no_job_that_keeps_its_node(*, keep_node: bool) -> None:
    """A job on a node that is less than half used begins anew elsewhere, unless it keeps the node."""
    small: dict[str, Any] = {"cpu": 1, "memory": 2**30}
    first, other = a_job(seconds=300), a_job(seconds=9000, gpus=2, **small)
    outcome = simulated(a_declaration(), first, other, a_job(500, 5000, gpus=1, keep_node=keep_node, **small))
    assert [job.interruptions["scale-down"] for job in outcome.jobs] == [0, 0, not keep_node]
    assert outcome.jobs[2].ended == 500 + 5000 if keep_node else outcome.jobs[2].lost > 500


def test_pods_of_a_job_start_together() -> None:
    """A job starts when the last of its nodes is ready."""
    outcome = simulated(a_declaration(), a_job(pods=2))
    assert outcome.jobs[0].started == 100
    assert max(count for _, count in outcome.nodes("t4")) == 2


@pytest.mark.parametrize("checkpoint", [None, 600])
def test_a_reclaim_loses_the_work_since_the_last_checkpoint(checkpoint: float | None) -> None:
    """A node is reclaimed and created again, and its job repeats what no checkpoint has."""
    model = a_model(reclaims={"t4": {"perHour": 0.5}})
    job = a_job(seconds=3600, checkpoint=checkpoint)
    seed = next(seed for seed in range(99) if _interruptions(job, model, seed) == 1)
    outcome = simulated(a_declaration(), job, model=model, seed=seed)
    at, result = outcome.reclaims["t4"][0], outcome.jobs[0]
    assert result.interruptions == {"reclaim": 1}
    assert result.lost == (at - 100 if checkpoint is None else (at - 100) % 600)
    assert result.ended == at + 100 + 3600 - (at - 100 - result.lost)


def _interruptions(job: TraceJob, model: CloudModel, seed: int) -> int:
    return simulated(a_declaration(), job, model=model, seed=seed).jobs[0].interruptions.total()


def test_a_job_that_is_interrupted_again_and_again_fails() -> None:
    """A job that needs longer than its nodes live, without a checkpoint, is given up and counted."""
    outcome = simulated(a_declaration(), a_job(), model=a_model(reclaims={"spot": {"every": 600}}))
    assert outcome.jobs[0].why_not == "it was interrupted 100 times"
    assert outcome.jobs[0].lost == 100 * 600


def test_a_job_without_quota_waits_at_the_end() -> None:
    """A replay of a job that the scheduler never admits ends when nothing more can happen."""
    outcome = simulated(a_declaration(), a_job(50), quota=a_declaration(maximum=0))
    assert (outcome.end, outcome.jobs[0].why_not) == (50, "insufficient quota")


def test_a_replay_ends_before_kueues_clock() -> None:
    """Jobs that wait for each other longer than 250 years are not done, and their times are not negative."""
    years = 365 * 86400
    outcome = simulated(a_declaration(maximum=1), *(a_job(seconds=10 * years) for _ in range(30)))
    assert [job.why_not for job in outcome.jobs[24:]] == ["it had not ended after 250 years"] * 6
    assert all(job.ended for job in outcome.jobs[:24])
    assert outcome.end < 292 * years


@pytest.mark.parametrize("number", range(20))
def test_every_idle_node_is_removed(number: int) -> None:
    """A node goes after its delay also if the sum of the times is rounded down."""
    outcome = simulated(a_declaration(), a_job(seconds=1000 + number / 7))
    assert outcome.nodes("t4")[-1][1] == 0
    assert outcome.jobs[0].ended is not None
    assert outcome.end == pytest.approx(outcome.jobs[0].ended + 610, abs=0.1)


def test_work_in_no_queue_waits_for_nodes_alone() -> None:
    """The third of three jobs on two nodes waits until one is free; queued nodes are for queues alone."""
    declaration = changed(a_declaration(), queues={})
    jobs = [a_job(submit=10.0 * number, queue="vision/t4") for number in range(3)]
    outcome = simulated(declaration, *jobs, a_job(submit=30.0, gpus=1, queue="queued"))
    assert [job.started for job in outcome.jobs] == [100, 110, 3700, None]
    assert outcome.jobs[0].work.queue.team == "vision"
    assert outcome.jobs[3].why_not == "nodes of pool queued are provisioned for work in queues alone"


def test_a_stock_out_backs_off() -> None:
    """A pool without stock is tried again in the round after its backoff of 300 s, then of 600 s."""
    stock = {"t4": {"every": 5000, "lasts": 800}}
    outcome = simulated(a_declaration(), a_job(submit=5010, seconds=60), model=a_model(stock=stock))
    assert outcome.refusals["t4"] == [5010, 5320]
    assert outcome.jobs[0].started == 5320 + 610 + 100


def test_a_queued_job_waits_for_its_nodes() -> None:
    """Nodes of a queued pool come for one request, after its wait, and only then is the job admitted."""
    outcome = simulated(a_declaration(), a_job(gpus=1, queue="speech/queued"))
    assert outcome.jobs[0].started == 600 + 100
    assert outcome.jobs[0].ended == 700 + 3600


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"gpus": 8}, "a pod is larger than every node of queue vision/t4"),
        ({"pods": 3}, "its pods exceed the most nodes of every pool of queue vision/t4"),
        ({"gpus": 1, "queue": "vision/cpu"}, "queue vision/cpu lacks its accelerators"),
        (
            {"gpus": 1, "queue": "speech/queued", "seconds": 8 * 86400.0},
            "it runs longer than nodes of queue speech/queued live, without a checkpoint",
        ),
    ],
)
def test_a_job_that_never_fits_is_counted(fields: dict[str, Any], reason: str) -> None:
    """A job that fits no empty pool is an outcome of its own, and the others are replayed."""
    outcome = simulated(a_declaration(), a_job(**fields), a_job())
    assert [job.why_not for job in outcome.jobs] == [reason, ""]
    assert outcome.jobs[1].ended


def test_a_deadline_is_missed() -> None:
    """A job that ends after its deadline has missed it."""
    outcome = simulated(a_declaration(), a_job(deadline=3650), a_job(deadline=3750))
    assert [job.missed for job in outcome.jobs] == [True, False]


def test_the_same_seed_has_the_same_outcome() -> None:
    """Draws depend on the seed alone, so that two replays are equal and another seed is not."""
    model = a_model(startup={"spread": 0.5}, reclaims={"spot": {"perHour": 1}})
    jobs = [a_job(submit=60.0 * number, seconds=1200) for number in range(20)]
    outcomes = [simulated(a_declaration(), *jobs, model=model, seed=seed) for seed in (1, 1, 2)]
    first, again, other = ([(job.started, job.ended) for job in outcome.jobs] for outcome in outcomes)
    assert first == again != other


def test_quantiles_and_thinned_series() -> None:
    """A thinned series keeps the largest values; quantiles are values that occurred."""
    series = [(float(at), float(at % 10)) for at in range(1000)]
    assert len(thinned(series, 100, 1000)) == 100
    assert {value for _, value in thinned(series, 100, 1000)} == {9.0}
    assert quantile([1, 2, 3, 4], 0.5) == 2.5
    assert quantile([], 0.95) is None
    assert waits(simulated(a_declaration(), a_job()).jobs) == [100]
