"""Sleep and wake of a stack, with a cluster and a cloud that are given."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ebbtide.analysis.charges import Charge, Rates, flat
from ebbtide.clients.kubernetes import MERGE_PATCH, ApiError
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.operations import access
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import ObjectReference, OwnCluster, own_cluster
from ebbtide.operations.sleep import Running, Sleeper, hold, release, sleep, wake
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.kueue_api import ASLEEP
from tests.unit.operations.objects import STATE, condition, made, node, pod
from tests.unit.operations.world import QUEUES, World

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_QUEUE = f"{QUEUES}/cpu"
_ADMITTED = {**condition("QuotaReserved"), "admission": {"clusterQueue": "cpu"}}


class _Cluster(World):
    """A cluster with one queue, whose work ends if it is drained.

    Attributes:
        reason: a reason against a stop.
        silent: the number of patches that are not answered.
    """

    reason, silent = "", 0

    def has_work(self) -> None:
        """Let a Job of the queue run on a pool."""
        job = made("train")
        self.objects |= {
            "/api/v1/nodes/n": node("n", "spot"),
            "/api/v1/pods/train-0": pod("train-0", owner=("Job", job)),
            "/apis/batch/v1/jobs/train": job,
            f"{_KUEUE}/workloads/w": made("w", owner=("Job", job), status=_ADMITTED),
        }

    def ends(self) -> None:
        """End the Job."""
        for path in ("/api/v1/pods/train-0", f"{_KUEUE}/workloads/w"):
            self.objects.pop(path, None)

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> Any:
        """Change the queue."""
        if self.silent:
            self.silent -= 1
            raise ApiError(500, "failed calling webhook")
        if body["spec"]["stopPolicy"] == "HoldAndDrain":
            self.ends()
        return super().patch(path, body, kind, **query)

    def refusal(self) -> str:
        """Return the reason against a stop."""
        return self.reason

    @property
    def policy(self) -> str:
        """The stop policy of the queue."""
        return self.objects[_QUEUE]["spec"].get("stopPolicy", "None")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> _Cluster:
    """A cluster without work."""
    world = _Cluster([], {_QUEUE: {"metadata": {"name": "cpu"}, "spec": {}}})
    world.serve(monkeypatch)
    return world


def _sleeper(power: World, cloud: CloudKind = CloudKind.GKE) -> Sleeper:
    queue = ObjectReference("ClusterQueue", "", "cpu")
    prices = Rates(
        idle=Amount(0.4),
        idle_of_nodes=Amount(0.2),
        items=(flat("control plane", Amount(0.1)), flat("address", Amount(0.05))),
        has_nat=False,
        nodes={},
    )
    state = replace(STATE, owns_cluster=True, objects=STATE.objects | {queue})
    return Sleeper("dev", state, OwnCluster(cloud, "id", "train", ()), power, prices, {})


def _said(power: World, running: Running = Running.REFUSE, **options: Any) -> tuple[bool, str]:
    lines: list[str] = []
    done = sleep(_sleeper(power, **options), running, lines.append)
    return done, "\n".join(lines)


def test_an_idle_stack_sleeps_and_wakes(cluster: _Cluster) -> None:
    """Queues are held before machines stop, and released after they start, and the savings are shown."""
    done, output = _said(cluster)
    assert (done, cluster.stopped, cluster.policy) == (True, True, "Hold")
    assert "The queues are held" in output
    assert cluster.done == ["queue cpu is held", "are being stopped"]
    assert "it saves $0.20 per hour" in output
    assert "Still billed, $0.15 per hour: control plane, address." in output
    assert "Stack dev is asleep." in _said(cluster)[1]
    lines: list[str] = []
    cluster.silent = 2
    wake(_sleeper(cluster), lines.append)
    assert (cluster.stopped, cluster.policy) == (False, "None")
    assert cluster.done[2:] == ["are being started", "queue cpu is released"]
    assert ASLEEP not in cluster.objects[_QUEUE]["metadata"]["annotations"]
    assert lines[-1] == "Stack dev is awake."


def test_a_stopped_aks_cluster_has_no_control_plane(cluster: _Cluster) -> None:
    """The control plane of a stopped AKS cluster is not billed."""
    assert "Still billed, $0.050 per hour: address." in _said(cluster, cloud=CloudKind.AKS)[1]


_ADDRESS = flat("address", Amount(unknown=("address",)))


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ((flat("control plane", Amount(0.1)), _ADDRESS), "at least $0.10"),
        ((_ADDRESS,), "an unknown amount"),
    ],
)
def test_unknown_prices_are_not_free(cluster: _Cluster, items: tuple[Charge, ...], words: str) -> None:
    """The bill of a sleeping stack is unknown without a known price, or a lower bound with some."""
    sleeper = _sleeper(cluster)
    rates = replace(sleeper.rates, idle_of_nodes=_ADDRESS.idle, items=items)
    lines: list[str] = []
    sleep(replace(sleeper, rates=rates), Running.REFUSE, lines.append)
    assert "it saves an unknown amount per hour" in "\n".join(lines)
    assert f"Still billed, {words} per hour: " in "\n".join(lines)


def test_a_stack_that_expires_before_it_is_woken(cluster: _Cluster) -> None:
    """A stack that would be reaped asleep is not put to sleep, and is told to destroy; others are."""
    state = replace(STATE, expires=clock.now() + timedelta(hours=8))
    expiring = replace(_sleeper(cluster), state=state)
    lines: list[str] = []
    assert not sleep(expiring, Running.REFUSE, lines.append, timedelta(hours=11))
    assert "before it would wake, and nothing was changed. Destroy it with" in lines[0]
    assert (cluster.stopped, cluster.policy) == (False, "None")
    assert sleep(_sleeper(cluster), Running.REFUSE, lines.append, timedelta(hours=11))
    assert sleep(expiring, Running.REFUSE, lines.append, timedelta(hours=7))


def test_running_work_is_asked_for(cluster: _Cluster) -> None:
    """Running work is named and nothing changes; --now evicts it."""
    cluster.has_work()
    done, output = _said(cluster)
    assert (done, cluster.stopped, cluster.policy) == (False, False, "None")
    assert "Job train in research: 1 pod on spot" in output
    assert "sleep dev --wait" in output
    assert "sleep dev --now" in output
    done, _ = _said(cluster, Running.END)
    assert (done, cluster.stopped, cluster.policy) == (True, True, "HoldAndDrain")


def test_running_work_is_waited_for(cluster: _Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is admitted meanwhile, and the machines stop after its end."""
    cluster.has_work()
    waits: list[str] = []

    def pass_time(_seconds: float) -> None:
        waits.append(cluster.policy)
        if len(waits) == 3:
            cluster.ends()

    monkeypatch.setattr("ebbtide.operations.sleep.time.sleep", pass_time)
    assert _said(cluster, Running.WAIT)[0]
    assert waits == ["Hold"] * 3
    assert cluster.stopped


def test_a_queue_that_a_user_holds_stays_held(cluster: _Cluster) -> None:
    """Waking releases what sleeping held."""
    cluster.objects[_QUEUE]["spec"] = {"stopPolicy": "Hold"}
    assert _said(cluster)[0]
    wake(_sleeper(cluster), lambda _: None)
    assert cluster.policy == "Hold"


def test_a_cluster_that_cannot_sleep(cluster: _Cluster) -> None:
    """A cluster that cannot sleep is refused before any change."""
    cluster.reason = "It has node auto-provisioning."
    with pytest.raises(OperationError, match="cannot sleep, and nothing was changed"):
        _said(cluster)
    assert (cluster.stopped, cluster.policy) == (False, "None")


def test_only_a_cluster_of_ones_own_is_stopped() -> None:
    """An existing cluster has other users."""
    existing = {"type": "gcp:container/cluster:Cluster", "id": "c", "external": True}
    with pytest.raises(OperationError, match="no cluster of its own"):
        own_cluster("dev", {"resources": [existing]})


def test_pools_go_back_to_their_declared_sizes() -> None:
    """Pools return to their declared sizes, system pools first, with nodes counted per zone."""
    cluster = {"type": "gcp:container/cluster:Cluster", "id": "projects/p/locations/l/clusters/c"}

    def size(name: str, **inputs: Any) -> dict[str, Any]:
        return {
            "type": "gcp:container/nodePool:NodePool",
            "id": f"{cluster['id']}/nodePools/{name}",
            "inputs": inputs,
            "outputs": {"nodeLocations": ["a", "b", "c"]},
        }

    pools = own_cluster(
        "dev",
        {
            "resources": [
                cluster,
                size("spot", autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 9, "__defaults": []}),
                size("fixed", nodeCount=2),
                size("system", autoscaling={"totalMinNodeCount": 4, "totalMaxNodeCount": 9}),
            ]
        },
    ).pools
    assert [(pool.name, pool.count) for pool in pools] == [("fixed", 2), ("system", 2), ("spot", 0)]
    assert pools[2].autoscaling == {"totalMinNodeCount": 0, "totalMaxNodeCount": 9}


@pytest.mark.parametrize("before", ["None", "Hold"])
@pytest.mark.parametrize("drains", [[True], [True, True], [False, True], [False, True, False, True]])
def test_a_queue_wakes_as_it_was(before: str, drains: list[bool]) -> None:
    """A queue that a person held is held again, however often a sleep was repeated, drained or not."""
    world = World([], {_QUEUE: {"metadata": {"name": "cpu"}, "spec": {"stopPolicy": before}}})
    for drain in drains:
        hold(world, ["cpu"], drain=drain)
    assert world.objects[_QUEUE]["spec"] == {"stopPolicy": "HoldAndDrain"}
    assert access.is_asleep(world.objects[_QUEUE])
    release(world, ["cpu"])
    assert world.objects[_QUEUE]["spec"] == {"stopPolicy": before}
    assert not access.is_asleep(world.objects[_QUEUE])


@pytest.mark.parametrize(("status", "minutes"), [(403, 0), (500, 15)])
def test_a_queue_that_cannot_be_released_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, status: int, minutes: int
) -> None:
    """Webhooks that do not answer have a quarter of an hour; a refusal ends the release at once."""
    world = World([], {_QUEUE: {"metadata": {"name": "cpu", "annotations": {ASLEEP: "None"}}}})
    time = [0.0]

    def refuse(*_: object) -> None:
        raise ApiError(status, "You may not.")

    def passes(seconds: float) -> None:
        time[0] += seconds
        assert time[0] < 3600, "without an end"

    monkeypatch.setattr(world, "patch", refuse)
    monkeypatch.setattr("time.sleep", passes)
    monkeypatch.setattr("time.monotonic", lambda: time[0])
    with pytest.raises(ApiError, match="You may not"):
        release(world, ["gone", "cpu"])
    assert time[0] // 60 == minutes


@pytest.mark.parametrize(
    ("policy", "drain"), [("Hold", False), ("HoldAndDrain", False), ("HoldAndDrain", True)]
)
def test_a_queue_that_is_stopped_enough_is_not_written(policy: str, drain: bool) -> None:  # noqa: FBT001
    """A person's stop keeps its annotation and its time."""
    world = World([], {_QUEUE: {"metadata": {"name": "cpu"}, "spec": {"stopPolicy": policy}}})
    hold(world, ["cpu", "gone"], drain=drain)
    assert world.done == []
