"""The status of a stack, from the objects of its cluster."""

import re
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from rich.console import Console

from ebbtide.analysis.charges import Rates, flat
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.engine.state import ObjectReference
from ebbtide.operations.ledger import Report, Sum
from ebbtide.operations.status import QueueObjects, StatusSource, kueue_differences, status
from ebbtide.operations.status_report import GpuStatus, Status, UnusedGpus, tables
from ebbtide.operations.update.up import Update
from ebbtide.operations.work import Snapshot
from ebbtide.text import command_line
from ebbtide.values.kueue_api import API_PATH
from tests.contract.flips import GKE_EXISTING
from tests.declarations import changed
from tests.pages import output
from tests.unit.operations.objects import NOW, PROFILE, STATE, Object, condition, made, node, pod
from tests.unit.operations.world import World

_SPOT = PROFILE.pool("spot")
_PRICES = Rates(
    idle=Amount(0.3),
    idle_of_nodes=Amount(0.2),
    items=(flat("control plane", Amount(0.1)),),
    has_nat=False,
    nodes={"system": Amount(0.2), "spot": Amount(0.05)},
)
_SOURCE = StatusSource(
    "dev", replace(STATE, expires=NOW + timedelta(hours=3)), _PRICES, PROFILE, cast("Api", None)
)


def _node(name: str, pool: str, minutes: int, *, ready: str = "True", cordoned: bool = False) -> Object:
    made_node = made(name, minutes=minutes, status={"conditions": [{"type": "Ready", "status": ready}]})
    labels = {**node(name, pool)["metadata"]["labels"], "cloud.google.com/gke-nodepool": pool}
    made_node["metadata"]["labels"] = labels
    return {**made_node, "spec": {"unschedulable": cordoned}}


def _workload(job: Object, **status: Any) -> Object:
    return made("w-" + job["metadata"]["name"], owner=("Job", job), spec={"queueName": "ours"}, status=status)


_HELD: Object = {"podSetAssignments": [{"flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": "3"}}]}


def _missing(cpus: int) -> Object:
    """The condition of a Workload that lacks quota."""
    message = f"insufficient unused quota for cpu in flavor spot, {cpus} more needed"
    return {"type": "QuotaReserved", "status": "False", "message": message}


def _large(job: Object, requests: Object, **more: Any) -> Object:
    """The Workload of a Job with these requests of a pod."""
    container = {"resources": {"requests": requests}}
    workload = _workload(job)
    workload["spec"]["podSets"] = [{"template": {"spec": {"containers": [container]}}, "count": 1, **more}]
    return workload


def _status(snapshot: Snapshot, *, queueing: QueueObjects | None = None) -> Status:
    return status(_SOURCE, snapshot, queueing or QueueObjects(), NOW)


def _text(of: Status) -> str:
    output = StringIO()
    Console(file=output, width=80).print(tables(of))
    return output.getvalue()


def test_nodes_are_counted_once() -> None:
    """Each is ready, coming, cordoned or no longer ready."""
    nodes = (
        _node("s", "system", 600),
        _node("a", "spot", 30),
        _node("b", "spot", 2, ready="False"),
        _node("c", "spot", 40, ready="Unknown"),
        _node("d", "spot", 50, ready="Unknown", cordoned=True),
        {"metadata": {"name": "theirs"}},
    )
    system, spot = _status(Snapshot(nodes=nodes)).pools
    assert (system.ready, system.nodes, system.maximum) == (1, 1, 2)
    assert (spot.ready, spot.coming, spot.cordoned, spot.not_ready) == (1, 1, 1, 1)
    assert spot.oldest == NOW - timedelta(minutes=50)
    assert (spot.capacity, spot.usd_per_hour) == ("spot", 0.2)


def test_queues_of_others_in_the_cohort_are_named() -> None:
    """Others that share quota are listed with their workloads; those in other cohorts are not."""

    def queue(name: str, cohort: str, **status: int) -> Object:
        return made(name, spec={"cohortName": cohort}, status=status)

    listed = (
        queue("research.cpu", "ml"),
        queue("theirs", "ml", admittedWorkloads=3, pendingWorkloads=1200),
        queue("apart", "batch"),
        queue("alone", ""),
    )
    own = replace(STATE, objects=STATE.objects | {ObjectReference("ClusterQueue", "", "research.cpu")})
    found = status(replace(_SOURCE, state=own), Snapshot(), QueueObjects(cluster_queues=listed), NOW)
    assert [item.name for item in found.others] == ["theirs"]
    lines = " ".join(_text(found).split())
    assert "ClusterQueue theirs in cohort ml is not the stack's: 3 admitted, 1,200 waiting." in lines


def test_settings_of_an_existing_kueue_are_compared() -> None:
    """The controller is found under any name; the differences are in the status, or why they are unknown."""
    service = {"name": "jobs-kueue-webhook-service", "namespace": "batch"}
    settings = {"integrations": {"frameworks": ["batch/job", "pod"]}, "fairSharing": {}}
    objects: dict[str, Object] = {
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/localqueues.kueue.x-k8s.io": {
            "spec": {"conversion": {"webhook": {"clientConfig": {"service": service}}}}
        },
        "/api/v1/namespaces/batch/configmaps/jobs-kueue-manager-config": {
            "data": {"controller_manager_config.yaml": yaml.safe_dump(settings)}
        },
    }

    def find(path: str, **_: str) -> Object | None:
        if "deployments" in path or not objects:
            raise ApiError(403, "It is forbidden.")
        return objects.get(path)

    def compared() -> list[str]:
        return list(kueue_differences(cast("Api", SimpleNamespace(find=find)), declaration))

    declaration = declare(changed(GKE_EXISTING, addons={"kueue": {"existing": True}}))
    found = compared()
    assert [text.partition(":")[0] for text in found] == [
        "image",
        "waitForPodsReady.timeout",
        "resources.excludeResourcePrefixes",
        "visibilityServer.bindPort",
    ]
    report = status(_SOURCE, Snapshot(), QueueObjects(), NOW, kueue=tuple(found))
    assert "The cluster's Kueue, waitForPodsReady.timeout: It is 30 minutes." in " ".join(
        _text(report).split()
    )
    objects.clear()
    assert compared() == ["The settings of the cluster's Kueue are unknown: It is forbidden."]


def test_an_estimated_price_is_marked() -> None:
    """The pool's and the stack's cost are estimates, with the item that is the reason."""
    prices = replace(_PRICES, nodes={**_PRICES.nodes, "spot": Amount(0.05, estimated=("d8 (spot)",))})
    snapshot = Snapshot(nodes=(_node("a", "spot", 30),))
    report = status(replace(_SOURCE, rates=prices), snapshot, QueueObjects(), NOW)
    assert [pool.estimated for pool in report.pools] == [False, True]
    assert report.cost.estimated == ("d8 (spot)",)
    text = _text(report)
    assert "~0.05" in text
    assert "Cost: about $0.15 per hour now" in text
    assert "Estimated prices: d8 (spot)." in text


def test_the_amount_spent_comes_from_the_record() -> None:
    """With a record, the cost of the nodes since its beginning is shown, and the idle part of it; without one
    no amount is claimed."""
    assert _status(Snapshot()).cost.spent_usd is None
    nodes = Sum("spot", cost=12.5)
    begins = NOW - timedelta(days=2)
    spent = Report(0, begins.timestamp(), 0, "pool", "USD", (), (nodes,), idle=2.5)
    report = status(_SOURCE, Snapshot(), QueueObjects(), NOW, spent=spent)
    assert (report.cost.spent_usd, report.cost.idle_usd, report.cost.spent_since) == (12.5, 2.5, begins)
    assert "Nodes have cost $12.50 since " in _text(report)
    assert "$2.50 of it idle" in " ".join(_text(report).split())


def test_a_pool_without_a_price() -> None:
    """Nodes without a price are named as not included."""
    unpriced = replace(_SOURCE, rates=replace(_PRICES, nodes={}))
    report = status(unpriced, Snapshot(nodes=(_node("a", "spot", 5),)), QueueObjects(), NOW)
    assert report.cost.unknown == ("pool spot",)
    assert report.pools[1].usd_per_hour is None
    assert "at least $0.10 per hour now" in _text(report)


def test_who_waits_for_what() -> None:
    """The reason is the cause that `ebbtide why` names; work that waits is not running work."""
    runs, full, queued = made("runs"), made("full", minutes=9), made("queued")
    check = {"name": "dws", "state": "Pending", "message": "waiting for capacity"}
    workload = _workload(queued, **condition("QuotaReserved"), admissionChecks=[check])
    request = made("r", owner=("Workload", workload), status=condition("Accepted"))
    report = _status(
        Snapshot(
            nodes=(_node("n", "spot", 30),),
            pods=(pod("runs-0", owner=("Job", runs)),),
            controllers={"Job": (runs, full, queued)},
            workloads=(
                _workload(runs, **condition("Admitted"), admission=_HELD),
                _workload(full, conditions=[_missing(2)]),
                workload,
            ),
        ),
        queueing=QueueObjects(requests=(request,)),
    )
    (queue,) = report.queues
    assert (queue.name, queue.admitted, queue.held) == ("cpu", 1, False)
    assert [(item.name, item.reason) for item in queue.waiting] == [
        ("full", "queue ours lacks 2 CPU of free quota in flavor spot, held by runs (3 CPU)"),
        ("queued", "admission check dws has requested its nodes from the cloud: waiting for capacity"),
    ]
    assert [(item.name, item.pools) for item in report.work] == [("runs", ("spot",))]


@pytest.mark.parametrize(
    ("requests", "more", "never"),
    [
        ({"cpu": "3"}, {}, ""),
        ({"cpu": "8"}, {}, f"a pod needs 8 CPU, and a node of pool spot has {_SPOT.cpu_m}m CPU"),
        (
            {"memory": "64Gi"},
            {},
            f"a pod needs 64Gi memory, and a node of pool spot has {_SPOT.memory_mib}Mi memory",
        ),
        (
            {"nvidia.com/gpu": "4"},
            {},
            "a pod needs 4 nvidia.com/gpu, and a node of pool spot has none",
        ),
        ({"example.com/dongle": "1"}, {}, ""),
        ({"cpu": "2"}, {"count": 3}, "it needs 3 pods at once, and pool spot has capacity for 2"),
        ({"cpu": "2"}, {"count": 3, "minCount": 2}, ""),
    ],
)
def test_work_that_can_never_run(requests: Object, more: Object, never: str) -> None:
    """A workload larger than any pool of its queue is named with the reason and the ways out of it."""
    large = made("large")
    report = _status(Snapshot(controllers={"Job": (large,)}, workloads=(_large(large, requests, **more),)))
    (waiting,) = report.queues[0].waiting
    assert waiting.never == never
    message = "Job large in research cannot run in queue cpu: "
    assert (message in " ".join(_text(report).split())) is bool(never)


def test_an_update_names_work_that_it_strands(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ebbtide up` compares waiting work with the pools as they would be, and continues without a cluster."""
    large = made("large")
    workload = _large(large, {"cpu": "3"})
    world = World([], {f"{API_PATH}/workloads/w": workload, "/apis/batch/v1/jobs/large": large})
    world.serve(monkeypatch)
    shrunk = replace(PROFILE, pools=(PROFILE.pools[0], replace(_SPOT, cpu_m=1930)))
    update = Update(cast("Any", world), cast("Any", None), Console())
    for profile, named in ((PROFILE, 0), (shrunk, 1)):
        recording = SimpleNamespace(outputs={"placementProfile": profile.json()})
        assert len(update.unplaceable(cast("Any", recording))) == named
    monkeypatch.undo()  # the stack has no outputs for a connection
    assert update.unplaceable(cast("Any", SimpleNamespace(outputs={"placementProfile": shrunk.json()}))) == []


def test_a_queue_that_is_held() -> None:
    """By its ClusterQueue, to which a LocalQueue of the team leads."""
    local = made("ours", spec={"clusterQueue": "research.cpu"})
    for policy, is_held in (("Hold", True), ("HoldAndDrain", True), ("None", False)):
        cluster_queue = {"metadata": {"name": "research.cpu"}, "spec": {"stopPolicy": policy}}
        queueing = QueueObjects(cluster_queues=(cluster_queue,), local_queues=(local,))
        assert _status(Snapshot(), queueing=queueing).queues[0].held is is_held


def test_the_page_shows_this_status() -> None:
    """The output on docs/running.md is what these objects give in a terminal of 80 columns."""
    runs, full = made("runs", minutes=5), made("full", minutes=9)
    report = _status(
        Snapshot(
            nodes=(_node("s", "system", 600), _node("n", "spot", 30)),
            pods=(pod("runs-0", owner=("Job", runs)),),
            controllers={"Job": (runs, full)},
            workloads=(
                _workload(runs, **condition("Admitted"), admission=_HELD),
                _workload(full, conditions=[_missing(1)]),
            ),
        )
    )
    printed = "".join(f"{line.rstrip()}\n" for line in _text(report).strip().splitlines())
    assert [printed] == output("docs/running.md", "Stack dev, cluster")


def test_the_same_reason_is_given_once() -> None:
    """Thousands of Jobs that wait for the same quota have one line, and another reason its own."""
    jobs = [made(f"full-{number}", minutes=9) for number in range(3000)]
    other = made("other", minutes=5)
    report = _status(
        Snapshot(
            controllers={"Job": (*jobs, other)},
            workloads=(*(_workload(job, conditions=[_missing(1)]) for job in jobs), _workload(other)),
        )
    )
    lines = [line.strip() for line in _text(report).splitlines() if " in cpu for " in line]
    assert lines == [
        "Job full-0 in research and 2,999 more wait in cpu for up to 5 minutes:",
        "Job other in research waits in cpu for 5 minutes:",
    ]


def test_the_tables_fit_a_terminal() -> None:
    """Eighty columns, whatever the names."""
    long = made("a-name-of-fifty-characters-that-a-sweep-could-have-1")
    report = _status(
        Snapshot(
            nodes=(_node("n", "spot", 90), _node("s", "system", 5)),
            pods=tuple(pod(f"p-{index}", owner=("Job", long)) for index in range(3)),
            controllers={"Job": (long,)},
        )
    )
    lines = _text(report).splitlines()
    assert max(map(len, lines)) <= 80
    assert re.search(
        r"^spot +spot +1 +- +- +2 +1 hour +0\.05$", "\n".join(map(str.rstrip, lines)), re.MULTILINE
    )
    assert lines[-1].startswith("Expires at 2026-11-21 15:00 UTC, in 3 h 0 min.")


@pytest.mark.parametrize(
    ("gpus", "line"),
    [
        (None, ""),
        (GpuStatus(measured=False), "The use of GPUs is not measured: addons.metrics is off."),
        (GpuStatus(measured=True, unknown="No access."), "The use of GPUs is unknown: No access."),
        (GpuStatus(measured=True), "No GPU is known to be held without use for an hour."),
        (
            GpuStatus(
                measured=True, unused=(UnusedGpus(namespace="vision", pod="train", node="n1", gpus=2),)
            ),
            "Pod train in vision holds 2 GPUs on n1, unused for an hour.",
        ),
    ],
)
def test_unused_gpus_are_named(gpus: GpuStatus | None, line: str) -> None:
    """A cluster with GPU pools has a sentence about their use; others have none."""
    text = _text(status(_SOURCE, Snapshot(), QueueObjects(), NOW, gpus=gpus))
    assert line in text
    assert ("GPU" in text) is bool(line)


def test_a_sleeping_stack_is_named_first() -> None:
    """Held by `sleep`, without a node; a queue that a user holds, or of another stack, does not sleep."""
    held = made("gpus", spec={"stopPolicy": "Hold"})
    asleep = {**held, "metadata": {**held["metadata"], "annotations": {"ebbtide.dev/asleep": "None"}}}
    other = {**asleep, "metadata": {**asleep["metadata"], "name": "theirs"}}
    own = replace(STATE, objects=frozenset({ObjectReference("ClusterQueue", "", "gpus")}))
    sentence = f"Stack dev is asleep. Wake it with: {command_line('wake', 'dev')}"
    nodes, awake = Snapshot(), Snapshot(nodes=(_node("n", "spot", 5),))
    for snapshot, queue, is_asleep in (
        (nodes, asleep, True),
        (nodes, held, False),
        (nodes, other, False),
        (awake, asleep, False),
    ):
        queueing = QueueObjects(cluster_queues=(queue,))
        shown = status(replace(_SOURCE, state=own), snapshot, queueing, NOW)
        assert shown.asleep is is_asleep
        assert (_text(shown).splitlines()[1] == sentence) is is_asleep


@pytest.mark.parametrize(
    ("begins", "ends", "words"),
    [
        (30, 90, "begins at 2026-11-21 12:30 UTC, in 30 min 0 s."),
        (-90, -30, "ended at 2026-11-21 11:30 UTC: no machine comes for the pool."),
    ],
)
def test_a_reservation_is_counted_down(begins: int, ends: int, words: str) -> None:
    """A reservation that has not begun, or has ended, is not billed."""
    report = _reserved(begins, ends)
    assert report.cost.usd_per_hour == 0.15
    assert f"The reservation of pool spot {words}" in " ".join(_text(report).split())


def test_the_end_of_a_reservation_names_the_work_that_it_ends() -> None:
    """Work on the pool without a time limit before the end is named; a Job that ends before is not."""
    report = _reserved(-30, 90)
    (reservation,) = report.reservations
    assert reservation.ends_work == ("Job long in research", "Job open in research")
    words = "in 1 h 30 min, and with it work that has no time limit before: Job long in research, Job open in"
    assert words in " ".join(_text(report).split())
    assert report.cost.usd_per_hour == 2.15


def _reserved(begins: int, ends: int) -> Status:
    """Return a status with three Jobs on a pool whose reservation begins and ends in minutes."""
    begin, end = NOW + timedelta(minutes=begins), NOW + timedelta(minutes=ends)
    reservation = replace(flat("reservation", Amount(2.0)), begins=begin, ends=end, reserves="spot")
    prices = replace(_PRICES, items=(*_PRICES.items, reservation))
    start = {"startTime": (NOW - timedelta(minutes=10)).isoformat()}
    jobs = [
        made(name, spec={"activeDeadlineSeconds": seconds} if seconds else {}, status=start)
        for name, seconds in (("short", 3600), ("long", 7200), ("open", 0))
    ]
    attempt = made("attempt")
    pods = tuple(
        pod(f"{job['metadata']['name']}-0", node="a", owner=("Job", job)) for job in (*jobs, attempt)
    )
    pods[-1]["spec"]["activeDeadlineSeconds"] = 600
    pods[-1]["status"] |= start
    jobs.append(attempt)
    snapshot = Snapshot(nodes=(_node("a", "spot", 30),), pods=pods, controllers={"Job": tuple(jobs)})
    return status(replace(_SOURCE, rates=prices), snapshot, QueueObjects(), NOW)
