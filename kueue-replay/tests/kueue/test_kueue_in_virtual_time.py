"""Kueue in virtual time: its decisions about small queues, without an API server."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from components.addons.kueue import configuration
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.queue_objects import layers
from ebbtide.placement.queueing import queueing
from ebbtide_rehearsal.tools.progress import narrated
from kueue_jobs import (
    CONFIGURATION,
    NAMESPACE,
    RECLAIM,
    Job,
    flavors,
    play,
    provisioning,
    queue,
    trace,
)
from kueue_replay.kueue import (
    PROGRAM,
    Action,
    Apply,
    Check,
    Event,
    Finish,
    Kueue,
    KueueError,
    PodSet,
    PodsReady,
    Submit,
)
from tests.declarations import GKE, changed

pytestmark = pytest.mark.rehearsal

FAIR: Final[Mapping[str, Any]] = CONFIGURATION | {
    "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
}
"""Kueue's configuration with fair sharing, as a declaration has it."""


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, built if it is not in the cache."""
    return narrated([PROGRAM]).path(PROGRAM)


def test_jobs_wait_for_quota_in_order(program: Path) -> None:
    """The second of two jobs that do not fit together starts a second after the first ends, when Kueue
    retries; of equal jobs, the earlier one starts first."""
    jobs = [Job(0, "a", 2, 10), Job(1, "a", 2, 10), Job(2, "a", 2, 10), Job(3, "a", 1, 1)]
    played = play(program, [*flavors("f"), *queue("a", {"f": 2})], jobs)
    assert played.at("admitted") == {"0": [0.0], "1": [11.0], "2": [22.0], "3": [33.0]}
    assert played.at("finished") == {"0": [10.0], "1": [21.0], "2": [32.0], "3": [34.0]}
    assert (played.end.next, dict(played.end.pending)) == (None, {})


def test_fair_sharing_divides_borrowed_quota(program: Path) -> None:
    """With fair sharing, two queues with equal weights get equal parts of what they borrow; without it, the
    first one keeps all."""
    quotas = {"preemption": RECLAIM}
    objects = [*flavors("f"), *queue("a", {"f": 0}, "all", **quotas), *queue("b", {"f": 0}, "all", **quotas)]
    objects += queue("owner", {"f": 4}, "all")
    jobs = [Job(at, "a" if at < 4 else "b", 1, 100) for at in range(8)]
    fair = CONFIGURATION | {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}}
    shared = play(program, objects, jobs, configuration=fair)
    assert {job for job, times in shared.at("admitted").items() if times[0] < 50} == set("012345")
    assert {job for job, times in shared.at("evicted").items() if times[0] < 50} == {"2", "3"}
    assert play(program, objects, jobs).at("evicted") == {}


def test_provisioning_requests_are_retried_with_backoff(program: Path) -> None:
    """A failed ProvisioningRequest releases the quota and is retried after the backoff of its configuration;
    after the last attempt, the job is deactivated."""
    check = {"admissionChecks": [{"name": "queued"}]}
    objects = [
        *flavors("f"),
        *provisioning("queued", 2),
        *queue("a", {"f": 2}, admissionChecksStrategy=check),
    ]

    def fail(event: Event, until: int) -> Iterable[Action]:
        if event.kind == "check":
            state = "Failed" if event.attempt <= until else "Ready"
            yield Check(event.at + 10, event.job, event.check, state)

    ready = play(program, objects, [Job(0, "a", 2, 10)], answer=lambda event: fail(event, 2))
    assert [round(time) for time in ready.at("check")["0"]] == [0, 11, 23]
    assert [round(time) for time in ready.at("admitted")["0"]] == [33]
    failed = play(program, objects, [Job(0, "a", 2, 10)], answer=lambda event: fail(event, 9))
    assert [event.attempt for event in failed.events if event.kind == "check"] == [1, 2, 3]
    assert [round(time) for time in failed.at("deactivated")["0"]] == [33]


def test_pods_that_are_not_ready_in_time_are_requeued(program: Path) -> None:
    """A job whose pods do not become ready is evicted after the timeout, waits for a backoff that doubles,
    and leaves its quota to others meanwhile."""
    waiting = {"timeout": "60s", "requeuingStrategy": {"backoffBaseSeconds": 10, "backoffLimitCount": 2}}
    jobs = [Job(0, "a", 2, math.inf), Job(1, "a", 2, 5)]
    objects = [*flavors("f"), *queue("a", {"f": 2})]
    played = play(program, objects, jobs, configuration=CONFIGURATION | {"waitForPodsReady": waiting})
    assert [round(time) for time in played.at("admitted")["0"]] == [0, 70, 150]
    assert [round(time) for time in played.at("admitted")["1"]] == [61]
    assert [round(time) for time in played.at("deactivated")["0"]] == [210]


def test_backoffs_are_equal_in_equal_runs(program: Path) -> None:
    """The random part that Kueue adds to a backoff is the same in each run, to the nanosecond."""
    waiting = {"timeout": "60s", "requeuingStrategy": {"backoffBaseSeconds": 1000, "backoffLimitCount": 3}}

    def run() -> list[float]:
        played = play(
            program,
            [*flavors("f"), *queue("a", {"f": 2})],
            [Job(0, "a", 2, math.inf)],
            configuration=CONFIGURATION | {"waitForPodsReady": waiting},
        )
        return played.at("admitted")["0"]

    times = run()
    assert (len(times), times[1] % 1 > 0, times) == (4, True, run())


def test_lost_nodes_have_the_time_of_recovery(program: Path) -> None:
    """A job whose pod has failed is evicted if the pod is not replaced within the recovery timeout."""
    waiting = {"timeout": "60s", "recoveryTimeout": "30s"}

    def lose(event: Event) -> Iterable[Action]:
        if event.kind == "admitted" and event.at == 0:
            yield PodsReady(5, "0")
            yield PodsReady(100, "0", ready=False)
            yield PodsReady(120, "0")
            yield PodsReady(200, "0", ready=False)

    played = play(
        program,
        [*flavors("f"), *queue("a", {"f": 2})],
        [Job(0, "a", 2, 10)],
        configuration=CONFIGURATION | {"waitForPodsReady": waiting},
        answer=lose,
    )
    assert [round(time) for time in played.at("evicted")["0"]] == [230]


def test_a_victim_that_is_first_in_line_again_takes_time(program: Path) -> None:
    """With fair sharing, Kueue evicts a job that at once has its quota back, until another one ends."""
    objects = [*flavors("f"), *queue("owner", {"f": 6}, "all")]
    for name in "abc":
        objects += queue(name, {"f": 0}, "all", preemption=RECLAIM)
    jobs = [
        Job(0, "c", 1, 100),
        Job(1, "b", 1, 100, 100),
        Job(2, "a", 2, 28, 100),
        Job(3, "b", 2, 100, 100),
        Job(10, "c", 2, 10, 100),
    ]
    played = play(program, objects, jobs, configuration=FAIR)
    evictions = played.at("evicted")["3"]
    assert (evictions[0], evictions[-1]) == (10, 29)
    assert played.at("admitted")["4"] == [30.0]
    assert len(played.at("finished")) == len(jobs)


def test_changed_quota_admits_what_waits(program: Path) -> None:
    """A job that exceeds the quota starts once it is raised."""
    (larger, _) = queue("a", {"f": 4})
    played = play(program, [*flavors("f"), *queue("a", {"f": 2})], [Job(0, "a", 4, 10)], Apply(30, larger))
    assert played.at("admitted") == {"0": [31.0]}


def test_a_run_reaches_the_next_event_after_months(program: Path) -> None:
    """A run until the next event reaches it also where seconds cannot express each nanosecond."""
    waiting = {"timeout": "60s", "requeuingStrategy": {"backoffBaseSeconds": 10, "backoffLimitCount": 5}}
    objects = [*flavors("f"), *queue("a", {"f": 20})]
    pods = [PodSet("main", 1, {"cpu": "2"})]
    with Kueue(program, objects, CONFIGURATION | {"waitForPodsReady": waiting}) as kueue:
        kueue.add(*(Submit(8.4e6 + number, str(number), f"{NAMESPACE}/a", pods) for number in range(10)))
        end, runs = kueue.run(until=0), 0
        while end.next is not None and runs < 1000:
            end, runs = kueue.run(until=end.next), runs + 1
    assert end.next is None


def test_a_run_ends_with_the_first_decision(program: Path) -> None:
    """Without answers, only decisions are reported, and a run stops after the first one before a time; a job
    to come changes nothing while an equal one waits."""
    objects, pods = [*flavors("f"), *queue("a", {"f": 2})], [PodSet("main", 1, {"cpu": "2"})]
    told: list[tuple[str, str, float]] = []

    def note(event: Event) -> Iterable[Action]:
        told.append((event.kind, event.job, event.at))
        return ()

    with Kueue(program, objects, CONFIGURATION, answered=False) as kueue:
        kueue.add(*(Submit(at, job, f"{NAMESPACE}/a", pods) for job, at in (("x", 5), ("y", 10), ("z", 30))))
        ends = [kueue.run(note, until=0, before=5)]
        ends += [kueue.run(note, until=0, before=100)]
        ends += [kueue.run(note, until=5, before=30)]
        kueue.add(Finish(30, "x"))
        ends += [kueue.run(note, until=30, before=100)]
    assert told == [("admitted", "x", 5), ("admitted", "y", 31)]
    assert [end.at for end in ends] == [0, 5, 10, 31]
    assert [end.next for end in ends[:2]] == [5, 10]
    assert (ends[2].next or 0) > 1000


@pytest.mark.parametrize("priorities", [(0,), (0, 100)])
def test_equal_input_gives_equal_events(program: Path, priorities: tuple[int, ...]) -> None:
    """Three runs of 300 jobs in two cohorts report the same events at the same times, with evictions."""
    objects = [
        *flavors("f", "g"),
        *(
            item
            for name, cohort in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))
            for item in queue(name, {"f": 2, "g": 1}, cohort, preemption=RECLAIM)
        ),
    ]
    jobs = trace(300, 7, "abcd", priorities)
    first, *others = (play(program, objects, jobs) for _ in range(3))
    assert others == [first, first]
    assert len(first.at("finished")) == len(jobs)
    assert first.at("evicted")


def test_the_objects_of_a_declaration_are_read(program: Path) -> None:
    """Kueue admits a job to a queue of a declaration, with our configuration of its controller."""
    cluster = declare(changed(GKE, queues=[{"name": "gpus", "pools": ["t4"]}], teams=[{"name": "vision"}]))
    objects = [item for layer in layers(queueing(cluster)) for item in layer]
    (local,) = (item for item in objects if item["kind"] == "LocalQueue")
    name = f"{local['metadata']['namespace']}/{local['metadata']['name']}"
    pods = [PodSet("main", 1, {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"})]
    admitted: list[Event] = []

    def follow(event: Event) -> Iterable[Action]:
        if event.kind == "admitted":
            admitted.append(event)
            yield PodsReady(event.at + 60, event.job)
            yield Finish(event.at + 600, event.job)

    with Kueue(program, objects, configuration(cluster)) as kueue:
        kueue.add(Submit(5, "train", name, pods))
        assert kueue.run(follow, until=100).next == 605
        end = kueue.run(follow)
    assert (end.next, dict(end.pending)) == (None, {})
    assert admitted[0].flavors == {"main": dict.fromkeys(("cpu", "memory", "nvidia.com/gpu"), "t4")}


def _declared(program: Path, jobs: Sequence[Job], names: str, **declared: Any) -> list[Event]:
    """Return the events of jobs of teams, named by a letter, on four T4 nodes of 4 GPUs that they share."""
    teams = [{"name": name} for name in names]
    cluster = declare(changed(GKE, queues=[{"name": "t4", "pools": ["t4"]}], teams=teams) | declared)
    objects = [item for layer in layers(queueing(cluster)) for item in layer]
    events: list[Event] = []

    def follow(event: Event) -> Iterable[Action]:
        events.append(event)
        if event.kind == "admitted":
            yield Finish(event.at + jobs[int(event.job)].seconds, event.job)

    settings = {"fairSharing": configuration(cluster)["fairSharing"]}
    with Kueue(program, objects, CONFIGURATION | settings) as kueue:
        for number, job in enumerate(jobs):
            requests = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(job.cpus)}
            pods = [PodSet("main", 1, requests)]
            kueue.add(Submit(job.at, str(number), f"{job.queue}/t4", pods, job.priority))
        kueue.run(follow)
    return events


def _evictions(program: Path, jobs: Sequence[Job], **declared: Any) -> Counter[str]:
    """Count the evictions of jobs of teams `a` and `b`, by reason."""
    evicted = (item for item in _declared(program, jobs, "ab", **declared) if item.kind == "evicted")
    return Counter("fair sharing" if "Fair Sharing" in item.message else "priority" for item in evicted)


def test_teams_without_guarantees_do_not_preempt_equal_work(program: Path) -> None:
    """In 200 jobs of one priority no job restarts, while `Any` costs some of them their progress."""
    jobs = trace(200, 1, "aab", sizes=(2, 4))
    assert _evictions(program, jobs) == {}
    cohort = {"preemption": {"reclaimWithinCohort": "Any"}}
    assert _evictions(program, jobs, cohort=cohort)["fair sharing"] > 10


def test_never_ends_preemption_of_borrowers_within_their_queue(program: Path) -> None:
    """Higher priority preempts in a queue that borrows, unless it is not allowed to preempt in its cohort."""
    jobs = trace(200, 1, "a", priorities=(0, 1000), sizes=(2, 4))
    assert _evictions(program, jobs)["priority"] > 10
    assert _evictions(program, jobs, cohort={"preemption": {"reclaimWithinCohort": "Never"}}) == {}


def test_a_limit_of_nodes_is_a_limit_of_what_runs(program: Path) -> None:
    """A team with a limit of one node runs one job of a node at a time; with strict order, a job that waits
    holds up a smaller one behind it."""
    jobs = [Job(number, "a", gpus, 100) for number, gpus in enumerate((3, 4, 1))]

    def started(**declared: Any) -> list[float]:
        return [item.at for item in _declared(program, jobs, "a", **declared) if item.kind == "admitted"]

    assert started() == [0, 1, 2]
    limited = {"teams": [{"name": "a", "borrowingLimit": {"t4": 1}}]}
    assert started(**limited) == [0, 2, 103]
    assert started(**limited, cohort={"queueingStrategy": "StrictFIFO"}) == [0, 100, 200]


def test_invalid_input_is_reported(program: Path) -> None:
    """An action about an unknown job, a configuration that would block all admissions, and one that Kueue
    refuses are errors with their reason."""
    with Kueue(program, [], CONFIGURATION) as kueue:
        kueue.add(Finish(1, "missing"))
        with pytest.raises(KueueError, match="Finish missing: there is no such job"):
            kueue.run()
    blocked = CONFIGURATION | {"waitForPodsReady": {"timeout": "60s", "blockAdmission": True}}
    with Kueue(program, [], blocked) as kueue, pytest.raises(KueueError, match="blockAdmission"):
        kueue.run()
    refused: dict[str, Any] = CONFIGURATION | {"fairSharing": {}}
    with Kueue(program, [], refused) as kueue, pytest.raises(KueueError, match="preemptionStrategies"):
        kueue.run()
