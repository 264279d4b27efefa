"""Sleep and wake of a stack, with a cluster and a cloud that are given."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from ebbtide.analysis.charges import Charge, Rates, flat
from ebbtide.clients.kubernetes import JSON, MERGE_PATCH, Api, ApiError
from ebbtide.clients.kubernetes.objects import part
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.operations import access
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import ObjectReference, OwnCluster, own_cluster
from ebbtide.operations.sleep import Running, Sleeper, hold, release, sleep, wake
from ebbtide.placement import Profile
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.kueue_api import ASLEEP
from tests.unit.operations.objects import PROFILE, STATE, Object, condition, made, node, pod
from tests.unit.operations.world import QUEUES, World

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_QUEUE = f"{_KUEUE}/clusterqueues/cpu"
_ADMITTED = {**condition("QuotaReserved"), "admission": {"clusterQueue": "cpu"}}


class _Cluster(Api):
    """A cluster of objects by path. Work that is drained ends.

    Attributes:
        objects: objects and lists, by path.
        silent: the number of patches that are not answered.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.silent = 0
        self.objects: dict[str, Any] = {_QUEUE: {"metadata": {"name": "cpu"}, "spec": {}}}

    def runs(self, *, is_queued: bool = True) -> None:
        """Let a Job run on a pool."""
        job = made("train")
        self.objects["/api/v1/nodes"] = {"items": [node("n", "spot")]}
        self.objects["/api/v1/pods"] = {"items": [pod("train-0", owner=("Job", job))]}
        self.objects["/apis/batch/v1/jobs"] = {"items": [job]}
        if is_queued:
            self.objects[f"{_KUEUE}/workloads"] = {"items": [made("w", owner=("Job", job), status=_ADMITTED)]}

    def ends(self) -> None:
        """End the Job."""
        for path in ("/api/v1/pods", f"{_KUEUE}/workloads"):
            self.objects.pop(path, None)

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Object:  # noqa: ARG002 - as its base
        if path not in self.objects:
            raise ApiError(404, "not found")
        return self.objects[path]

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> Object:  # noqa: ARG002
        if self.silent:
            self.silent -= 1
            raise ApiError(500, "failed calling webhook")
        before = self.objects[path]
        annotations = {**part(before, "metadata", "annotations"), **body["metadata"]["annotations"]}
        kept = {key: value for key, value in annotations.items() if value is not None}
        self.objects[path] = {
            "metadata": {**before["metadata"], "annotations": kept},
            "spec": {**before["spec"], **body["spec"]},
        }
        if body["spec"]["stopPolicy"] == "HoldAndDrain":
            self.ends()
        return self.objects[path]

    @property
    def policy(self) -> str:
        """The stop policy of the queue."""
        return self.objects[_QUEUE]["spec"].get("stopPolicy", "None")


class _Power:
    """The power of a cluster."""

    def __init__(self, refusal: str = "") -> None:
        self.stopped, self._refusal = False, refusal

    def refusal(self) -> str:
        return self._refusal

    def is_stopped(self) -> bool:
        return self.stopped

    def stop(self, on_step: Callable[[str], None]) -> None:
        on_step("machines stop")
        self.stopped = True

    def start(self, on_step: Callable[[str], None]) -> None:
        on_step("machines start")
        self.stopped = False


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> _Cluster:
    """A cluster without work, with one queue."""
    made_cluster = _Cluster()

    def connected(_outputs: object, _consequence: str) -> tuple[Api, Profile]:
        return made_cluster, PROFILE

    monkeypatch.setattr(access, "connected", connected)
    monkeypatch.setattr("ebbtide.operations.sleep._WEBHOOKS_STEP", 0.0)
    return made_cluster


def _sleeper(power: _Power, cloud: CloudKind = CloudKind.GKE) -> Sleeper:
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


def _said(power: _Power, running: Running = Running.REFUSE, **options: Any) -> tuple[bool, str]:
    lines: list[str] = []
    done = sleep(_sleeper(power, **options), running, lines.append)
    return done, "\n".join(lines)


def test_an_idle_stack_sleeps_and_wakes(cluster: _Cluster) -> None:
    """Queues are held before machines stop, and released after they start, and the savings are shown."""
    power = _Power()
    done, output = _said(power)
    assert (done, power.stopped, cluster.policy) == (True, True, "Hold")
    assert output.index("The queues are held") < output.index("machines stop")
    assert "it saves $0.20 per hour" in output
    assert "Still billed, $0.15 per hour: control plane, address." in output
    assert "Stack dev is asleep." in _said(power)[1]
    lines: list[str] = []
    cluster.silent = 2
    wake(_sleeper(power), lines.append)
    assert (power.stopped, cluster.policy) == (False, "None")
    assert ASLEEP not in cluster.objects[_QUEUE]["metadata"]["annotations"]
    assert lines[-1] == "Stack dev is awake."


@pytest.mark.usefixtures("cluster")
def test_a_stopped_aks_cluster_has_no_control_plane() -> None:
    """The control plane of a stopped AKS cluster is not billed."""
    assert "Still billed, $0.050 per hour: address." in _said(_Power(), cloud=CloudKind.AKS)[1]


_ADDRESS = flat("address", Amount(unknown=("address",)))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("items", "words"),
    [
        ((flat("control plane", Amount(0.1)), _ADDRESS), "at least $0.10"),
        ((_ADDRESS,), "an unknown amount"),
    ],
)
def test_unknown_prices_are_not_free(items: tuple[Charge, ...], words: str) -> None:
    """The bill of a sleeping stack is unknown without a known price, or a lower bound with some."""
    sleeper = _sleeper(_Power())
    rates = replace(sleeper.rates, idle_of_nodes=_ADDRESS.idle, items=items)
    lines: list[str] = []
    sleep(replace(sleeper, rates=rates), Running.REFUSE, lines.append)
    assert "it saves an unknown amount per hour" in "\n".join(lines)
    assert f"Still billed, {words} per hour: " in "\n".join(lines)


def test_a_stack_that_expires_before_it_is_woken(cluster: _Cluster) -> None:
    """A stack that would be reaped asleep is not put to sleep, and is told to destroy; others are."""
    power = _Power()
    state = replace(STATE, expires=clock.now() + timedelta(hours=8))
    expiring = replace(_sleeper(power), state=state)
    lines: list[str] = []
    assert not sleep(expiring, Running.REFUSE, lines.append, timedelta(hours=11))
    assert "before it would wake, and nothing was changed. Destroy it with" in lines[0]
    assert (power.stopped, cluster.policy) == (False, "None")
    assert sleep(_sleeper(power), Running.REFUSE, lines.append, timedelta(hours=11))
    assert sleep(expiring, Running.REFUSE, lines.append, timedelta(hours=7))


def test_running_work_is_asked_for(cluster: _Cluster) -> None:
    """Running work is named and nothing changes; --now evicts it."""
    cluster.runs()
    power = _Power()
    done, output = _said(power)
    assert (done, power.stopped, cluster.policy) == (False, False, "None")
    assert "Job train in research: 1 pod on spot" in output
    assert "sleep dev --wait" in output
    assert "sleep dev --now" in output
    done, _ = _said(power, Running.END)
    assert (done, power.stopped, cluster.policy) == (True, True, "HoldAndDrain")


def test_running_work_is_waited_for(cluster: _Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is admitted meanwhile, and the machines stop after its end."""
    cluster.runs()
    waits: list[str] = []

    def pass_time(_seconds: float) -> None:
        waits.append(cluster.policy)
        if len(waits) == 3:
            cluster.ends()

    monkeypatch.setattr("ebbtide.operations.sleep.time.sleep", pass_time)
    power = _Power()
    assert _said(power, Running.WAIT)[0]
    assert waits == ["Hold"] * 3
    assert power.stopped


def test_a_queue_that_a_user_holds_stays_held(cluster: _Cluster) -> None:
    """Waking releases what sleeping held."""
    cluster.objects[_QUEUE]["spec"] = {"stopPolicy": "Hold"}
    power = _Power()
    assert _said(power)[0]
    wake(_sleeper(power), lambda _: None)
    assert cluster.policy == "Hold"


def test_a_cluster_that_cannot_sleep(cluster: _Cluster) -> None:
    """A cluster that cannot sleep is refused before any change."""
    power = _Power("It has node auto-provisioning.")
    with pytest.raises(OperationError, match="cannot sleep, and nothing was changed"):
        _said(power)
    assert (power.stopped, cluster.policy) == (False, "None")


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


class _Queue:
    """A cluster with one queue, whose changes are merged."""

    def __init__(self, policy: str) -> None:
        self.queue: Object = {"metadata": {"name": "research.cpu"}, "spec": {"stopPolicy": policy}}

    def find(self, _: str) -> Object:
        """The queue."""
        return self.queue

    def patch(self, _: str, body: Any) -> None:
        """Merge the change."""
        annotations = {**self.queue["metadata"].get("annotations", {}), **body["metadata"]["annotations"]}
        kept = {key: value for key, value in annotations.items() if value is not None}
        self.queue = {"metadata": {"name": "research.cpu", "annotations": kept}, "spec": body["spec"]}


@pytest.mark.parametrize("before", ["None", "Hold"])
@pytest.mark.parametrize("drains", [[True], [True, True], [False, True], [False, True, False, True]])
def test_a_queue_wakes_as_it_was(before: str, drains: list[bool]) -> None:
    """A queue that a person held is held again, however often a sleep was repeated, drained or not."""
    api = _Queue(before)
    for drain in drains:
        hold(cast("Api", api), ["research.cpu"], drain=drain)
    assert api.queue["spec"] == {"stopPolicy": "HoldAndDrain"}
    assert access.is_asleep(api.queue)
    release(cast("Api", api), ["research.cpu"])
    assert api.queue["spec"] == {"stopPolicy": before}
    assert not access.is_asleep(api.queue)


@pytest.mark.parametrize(("status", "minutes"), [(403, 0), (500, 15)])
def test_a_queue_that_cannot_be_released_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, status: int, minutes: int
) -> None:
    """Webhooks that do not answer have a quarter of an hour; a refusal ends the release at once."""
    world = World([], {f"{QUEUES}/cpu": {"metadata": {"name": "cpu", "annotations": {ASLEEP: "None"}}}})
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
    world = World([], {f"{QUEUES}/cpu": {"metadata": {"name": "cpu"}, "spec": {"stopPolicy": policy}}})
    hold(world, ["cpu", "gone"], drain=drain)
    assert world.done == []
