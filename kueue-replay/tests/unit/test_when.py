"""When work starts: replays of a present state with a first-in, first-out scheduler."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from threading import Barrier
from typing import Any

import pytest

from ebbtide.declaration.model.declare import declare
from ebbtide.operations.traces.existing import ExistingWork, PodRequests
from ebbtide.operations.traces.when import Estimate, Present, PresentJob, estimate, present_cluster
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from first_in import first_in
from kueue_replay.cluster import Cluster, Declaration
from kueue_replay.replays import Replay
from kueue_replay.scheduler import Scheduler
from tests.declarations import GKE, changed
from tests.declarations import pool as pool_in

NOW = 1_800_000_000.0
_GPUS = PodRequests(1, 1.0, 2.0**30, 4)


def _cluster(nodes: int) -> Profile:
    declared = changed(
        GKE,
        queues=[{"name": "t4", "pools": ["t4"]}, {"name": "big", "pools": ["a100"]}],
        teams=[{"name": "vision"}],
    )
    pool_in(declared, "t4")["nodes"] = {"max": nodes}
    return profile(declare(declared))


@pytest.fixture(scope="module")
def cluster() -> Profile:
    """The profile of a cluster with one node of four T4, and a queue for it."""
    return _cluster(1)


def _work(name: str, since: float | None = None, limit: int | None = None, **fields: Any) -> ExistingWork:
    """Work of four T4, running since some seconds, or waiting."""
    began = None if since is None else NOW - since
    work = ExistingWork(
        namespace="vision",
        name=name,
        user="",
        created=NOW - 7200,
        admitted=began,
        started=began,
        ended=None,
        queue="t4",
        priority="",
        requests=replace(_GPUS, limit=limit),
        pod_uids=frozenset(),
    )
    return replace(work, **fields)


def _replayed(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return Replay(request).run(first_in).job_documents()


def _start(cluster: Profile, *jobs: PresentJob, target: ExistingWork | None = None, **more: Any) -> Estimate:
    present = Present(now=NOW, jobs=jobs, **more)
    return estimate(cluster, present, [target or _work("new")], _replayed)[0]


def test_a_job_starts_at_the_latest_at_the_time_limits_of_those_before_it(cluster: Profile) -> None:
    """The running job has 40 of 60 minutes left, and the waiting one its whole limit; the node stays."""
    jobs = PresentJob(_work("first", 1200, 3600)), PresentJob(_work("second", None, 600))
    start = _start(cluster, *jobs)
    assert start.most == pytest.approx(2400 + 600)
    assert start.half is not None
    assert 0 < start.least < start.half < 3000
    assert (start.position, start.limits, start.histories, start.node) == (2, 2, 0, 0)
    assert start.basis == "Run times are from 2 time limits."


def test_a_job_takes_a_node_that_is_free_before_its_own_has_booted() -> None:
    """A running job leaves its node within 30 seconds, and a new one takes longer."""
    start = _start(_cluster(2), PresentJob(_work("first", 1170, 1200)), nodes={"t4": 1})
    assert start.most == pytest.approx(30)


def test_replays_run_beside_each_other(cluster: Profile) -> None:
    """Two are under way at a time, since each waits for its own process."""
    both, entered = Barrier(2), count()

    @contextmanager
    def meeting(declaration: Declaration) -> Generator[Scheduler]:
        if next(entered) < 2:
            both.wait(600)
        with first_in(declaration) as scheduler:
            yield scheduler

    (start,) = estimate(
        cluster,
        Present(now=NOW, jobs=()),
        [_work("new")],
        lambda request: Replay(request).run(meeting).job_documents(),
    )
    assert start.half is not None


def test_earlier_runs_of_the_name_say_how_long_a_job_runs(cluster: Profile) -> None:
    """A job that has run longer than two of its five earlier runs ends like one of the others."""
    running = PresentJob(_work("first", 1000, 86400), (600, 900, 1100, 1200, 1300))
    start = _start(cluster, running)
    assert (start.least, start.most) == (100, 300)
    assert start.time.startswith("in about ")
    assert start.time.endswith(" (2 min to 5 min)")
    assert start.basis == "Run times are from earlier runs of 1 job."


def test_few_earlier_runs_leave_the_time_limit_possible(cluster: Profile) -> None:
    """With one earlier run, the latest start is at the time limit."""
    assert _start(cluster, PresentJob(_work("first", 0, 7200), (600,))).most == 7200


def test_a_job_without_limit_and_history_makes_it_unknown(cluster: Profile) -> None:
    """The job is named, and what to do."""
    start = _start(cluster, PresentJob(_work("endless", 60)))
    assert (start.half, start.time) == (None, "")
    assert start.problem == (
        "It cannot be known: vision/endless has no time limit, and no earlier run. --max-run sets one for "
        "new Jobs."
    )


def test_an_unknown_job_beside_free_capacity_does_not_matter(cluster: Profile) -> None:
    """Quota and a node are free, so the job starts at once."""
    small = replace(_GPUS, gpus=1)
    start = _start(
        cluster, PresentJob(_work("endless", 60, requests=small)), target=_work("new", requests=small)
    )
    assert start.time == "at once: quota and a node are available"
    assert start.document()["seconds"] == {"median": 0, "least": 0, "most": 0}


def test_a_new_node_takes_its_part(cluster: Profile) -> None:
    """Without a node, the wait is that for a node; with one, there is none."""
    start = _start(cluster)
    assert start.half is not None
    assert start.node == start.half > 60
    assert "; a node takes " in start.time
    assert _start(cluster, nodes={"t4": 1}).half == 0


def test_work_on_a_pool_waits_for_nodes_alone(cluster: Profile) -> None:
    """A Job in no queue starts when a running one leaves its node."""
    requests = replace(_GPUS, pool="t4")
    running = _work("first", 0, queue="", requests=replace(requests, limit=500))
    start = _start(cluster, PresentJob(running), target=_work("new", queue="", requests=requests))
    assert start.most == 500


def test_queued_nodes_of_running_work_exist(cluster: Profile) -> None:
    """A running job on a queued pool keeps its nodes, and a new one waits for the cloud's."""
    requests = replace(_GPUS, gpus=1)
    running = _work("first", 60, 3600, queue="big", requests=replace(requests, limit=3600), flavor="a100")
    start = _start(cluster, PresentJob(running), target=_work("new", queue="big", requests=requests))
    assert start.half is not None
    assert start.node == start.half > 120


def test_what_never_starts(cluster: Profile) -> None:
    """Too many pods, an unknown queue, and no place are sentences of their own."""
    many = _start(cluster, target=_work("new", requests=replace(_GPUS, pods=2)))
    assert many.problem == "It never starts: its pods exceed the most nodes of every pool of queue vision/t4."
    assert _start(cluster, target=_work("new", queue="none")).problem == "The cluster has no queue none."
    assert _start(cluster, target=_work("new", queue="")).problem == "It names no queue and no pool."


def test_a_higher_priority_is_further_ahead(cluster: Profile) -> None:
    """The position counts waiting jobs of the same or a higher priority."""
    jobs = [PresentJob(_work(name)) for name in ("first", "second")]
    assert _start(cluster, *jobs).position == 3
    assert _start(cluster, *jobs, target=_work("new", priority="ebbtide-high")).position == 1


def test_a_declaration_without_the_right_to_read_queues(cluster: Profile) -> None:
    """Queues have their pools' nodes as quota, and queued pools an admission check."""
    present = present_cluster(cluster, Present(now=NOW, jobs=()))
    declaration = Declaration.of(Cluster.model_validate(present))
    assert declaration.queues["vision/t4"].pools == ("t4",)
    assert declaration.flavors["a100"].queued
    (cohort,) = (item for item in declaration.cluster.objects if item["kind"] == "Cohort")
    quotas = {
        flavor["name"]: {item["name"]: item["nominalQuota"] for item in flavor["resources"]}
        for flavor in cohort["spec"]["resourceGroups"][0]["flavors"]
    }
    assert quotas["t4"]["nvidia.com/gpu"] == "4"
    assert [
        item["metadata"]["name"] for item in declaration.cluster.objects if item["kind"] == "AdmissionCheck"
    ] == ["queued-a100"]
