"""Scale-up for pending pods and scale-down of unneeded nodes, where upstream has no other answer to compare.

test_autoscaler_agreement.py compares the decisions that the real cluster-autoscaler makes too.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import UNINITIALIZED, Autoscaling, Expander, Machine, NodePool
from ebbtide.autoscaler.scale_down import SAFE_TO_EVICT, ScaleDownReview, review
from ebbtide.autoscaler.scale_up import NoScaleUpInfo, ScaleUp, expansion_options, ignored, scale_up
from ebbtide.autoscaler.scheduling import Pod
from ebbtide.autoscaler.snapshot import ClusterSnapshot
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.node_pools.loop import Autoscaler
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.unit.node_pool import (
    CLUSTER,
    MARK,
    a_gpu_pool,
    a_machine,
    a_node,
    a_pod,
    a_pool,
    backed_off,
    snapshot,
)


def _scale_up(
    cluster: ClusterSnapshot, backoff: Mapping[str, float] | None = None
) -> tuple[ScaleUp | None, list[NoScaleUpInfo]]:
    return scale_up(cluster, list(expansion_options(cluster, backoff or {})))


def _grown(cluster: ClusterSnapshot, backoff: Mapping[str, float] | None = None) -> str:
    planned, _ = _scale_up(cluster, backoff)
    return f"{planned.pool.name}+{len(planned.zones)}" if planned else ""


@given(st.lists(st.sampled_from(["500m", "1", "3", "4", "5"]), max_size=30), st.integers(0, 6))
def test_growth_is_enough_and_never_above_the_maximum(sizes: list[str], maximum: int) -> None:
    """No pool grows beyond its maximum, never without a pod, and no pod is promised what it does not fit."""
    pods = tuple(a_pod(f"p{number}", cpu=size) for number, size in enumerate(sizes))
    planned, unschedulable = _scale_up(snapshot(a_pool(maximum=maximum), pods=pods))
    if planned is None:
        assert maximum == 0 or all(size == "5" for size in sizes)
        assert {refusal.pod.name for refusal in unschedulable} == {pod.name for pod in pods}
        return
    assert 0 < len(planned.zones) <= maximum
    assert planned.pods
    assert all(pod.requests["cpu"] <= 4 for pod in planned.pods)
    assert sum(pod.requests["cpu"] for pod in planned.pods) <= 4 * len(planned.zones)
    assert {refusal.pod.name for refusal in unschedulable} == {
        pod.name for pod in pods if pod.requests["cpu"] > 4
    }


CPU, GPU = a_pool(), a_gpu_pool()
DEAR, CHEAP = a_pool("a", hourly=1.0), a_pool("b", hourly=0.1)
BUSY = a_pod("there", cpu="3", node="cpu-0", phase="Running")


def _joining(**node: Any) -> ClusterSnapshot:
    """A node of the GPU pool that has not all that it will have, and a pod for it."""
    machine = a_machine(GPU)
    nodes = {machine.name: a_node(GPU, machine, **node)}
    return snapshot(GPU, machines=(machine,), pods=(a_pod(gpu=1),), nodes=nodes)


@pytest.mark.parametrize(
    ("cluster", "backoff", "expected"),
    [
        (snapshot(GPU, pods=(a_pod(gpu=1),)), {}, "gpu+1"),
        (snapshot(GPU, machines=(a_machine(GPU, state="starting"),), pods=(a_pod(gpu=1),)), {}, ""),
        (_joining(taints=(*GPU.taints, NodeTaint(UNINITIALIZED, "true", "NoSchedule"))), {}, ""),
        (_joining(allocatable={"cpu": a_node(GPU, a_machine(GPU)).allocatable["cpu"]}), {}, ""),
        (snapshot(CPU, machines=(a_machine(CPU),), pods=(BUSY, a_pod(cpu="2"))), {}, "cpu+1"),
        (snapshot(DEAR, CHEAP, pods=(a_pod(),)), {}, "b+1"),
        (snapshot(DEAR, CHEAP, pods=(a_pod(),)), backed_off(CHEAP, 300), "a+1"),
        (snapshot(CHEAP, pods=(a_pod(),)), backed_off(CHEAP, 300), ""),
        (snapshot(CHEAP, pods=(a_pod(),), now=301.0), backed_off(CHEAP, 300), "b+1"),
        (snapshot(a_pool(capacity="queued"), pods=(a_pod(),)), {}, ""),
        # A deallocated machine counts against the maximum, and can be started again.
        (
            snapshot(
                a_pool(cloud="aks", maximum=1, deallocates=True),
                machines=(a_machine(a_pool(cloud="aks"), state="stopped"),),
                pods=(a_pod(),),
            ),
            {},
            "cpu+1",
        ),
        (snapshot(a_pool(together=4, maximum=4), pods=(a_pod(),)), {}, "cpu+4"),
        (snapshot(a_pool(together=4, maximum=3), pods=(a_pod(),)), {}, ""),
    ],
)
def test_the_pool_that_grows(cluster: ClusterSnapshot, backoff: Mapping[str, float], expected: str) -> None:
    """The cheapest pool grows that is not in backoff, by a whole slice, and no node is ordered while a
    suitable one starts, joins or installs its drivers."""
    assert _grown(cluster, backoff) == expected


def test_what_daemons_take_is_not_offered() -> None:
    """A pod that fits a node but for its DaemonSets' pods stays unschedulable."""
    daemon = a_pod("agent", cpu="500m", owner="", unschedulable=False)
    assert _grown(snapshot(CPU, pods=(a_pod(cpu="4"),))) == "cpu+1"
    _, (unschedulable,) = _scale_up(snapshot(CPU, pods=(a_pod(cpu="4"),), daemons=(daemon,)))
    assert unschedulable.message == "pod didn't trigger scale-up: 1 Insufficient cpu"


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(annotations={"autoscaling.x-k8s.io/consume-provisioning-request": "r"}),
        a_pod(owner="DaemonSet"),
        a_pod(deleting=True),
        a_pod(unschedulable=False),
        a_pod(raw={"spec": {"priority": -11}}),
    ],
)
def test_some_pods_never_bring_a_node(pod: Pod) -> None:
    """Pods of a ProvisioningRequest, of a DaemonSet, of low priority, or not found unschedulable."""
    assert _scale_up(snapshot(CPU, pods=(pod,))) == (None, [])


def test_pods_of_a_request_trigger_no_scale_up() -> None:
    """Only waiting pods of a ProvisioningRequest get the event that they trigger no scale-up."""
    mark = {"autoscaling.x-k8s.io/consume-provisioning-request": "r"}
    pods = (a_pod("mine", annotations=mark), a_pod("there", annotations=mark, node="cpu-0"), a_pod("other"))
    ((pod, reason),) = ignored(snapshot(CPU, pods=pods))
    assert pod.name == "mine"
    assert reason.endswith("because it's consuming ProvisioningRequest default/r")


ZONES = ("us-central1-a", "us-central1-b")
IN_ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ZONES[1:]}


@pytest.mark.parametrize(
    ("machines", "pods", "zones"),
    [
        ((), (a_pod(zones=frozenset(ZONES[1:])),), ZONES[1:]),
        ((), (a_pod(affinity=[{"matchExpressions": [IN_ZONE]}, {"matchExpressions": []}]),), ZONES[1:]),
        (
            (a_machine(a_pool(zones=ZONES), state="starting"),),
            tuple(a_pod(str(number), cpu="4") for number in range(4)),
            (*ZONES, ZONES[1]),
        ),
    ],
)
def test_zones_of_new_nodes(machines: tuple[Machine, ...], pods: tuple[Pod, ...], zones: Any) -> None:
    """A node comes where the pod's volume is or its affinity leads, others spread, least-populated first."""
    planned, _ = _scale_up(snapshot(a_pool(zones=ZONES), machines=machines, pods=pods))
    assert planned is not None
    assert sorted(planned.zones) == list(zones)


@pytest.mark.parametrize("expander", ["random", "priority"])
def test_aks_leaves_to_chance_what_its_expander_does_not_settle(expander: Expander) -> None:
    """Now one pool grows and now another, for the same pod always the same; priorities are not there."""
    pools = [a_pool(name, cloud="aks") for name in ("one", "two")]
    autoscaling = Autoscaling(expander=expander)
    first, second = (
        [
            _grown(snapshot(*pools, pods=(a_pod(str(number)),), autoscaling=autoscaling))
            for number in range(20)
        ]
        for _ in range(2)
    )
    assert set(first) == {"one+1", "two+1"}
    assert first == second


def test_a_compute_class_orders_its_pools() -> None:
    """The first rule that a pool meets is its place; a pool of no rule is not used unless the class says."""
    marks = {COMPUTE_CLASS: "train"}
    spot = a_pool("spot", labels=marks, hourly=0.9)
    steady = a_pool("steady", labels=marks, hourly=0.1, capacity="on-demand")
    rules = {"priorities": [{"nodepools": ["spot"]}, {"machineFamily": "n2", "spot": False}]}
    ordered = snapshot(spot, steady, pods=(a_pod(selector=marks),), classes={"train": rules})
    assert _grown(ordered) == "spot+1"
    assert _grown(ordered, backed_off(spot, 9)) == "steady+1"
    only = {"priorities": [{"machineType": "c4-standard-4"}]}
    for rules, expected in ((only, ""), ({**only, "whenUnsatisfiable": "ScaleUpAnyway"}, "spot+1")):
        assert _grown(replace(ordered, pools=(spot,), classes={"train": rules})) == expected


NOTHING = ScaleDownReview({}, {}, (), ())
LATE = 600.0


def _after(
    cluster: ClusterSnapshot, seconds: float = LATE, *, booked: frozenset[str] = frozenset()
) -> ScaleDownReview:
    """Return the review after some time without changes."""
    first = review(cluster, NOTHING, booked, None, NodeSettings())
    return review(replace(cluster, now=cluster.now + seconds), first, booked, None, NodeSettings())


def _beside(*pods: Pod, **more: Any) -> ClusterSnapshot:
    """A GPU node with pods, beside an empty node that has room for them."""
    other = a_pool("other", minimum=1)
    return snapshot(GPU, other, machines=(a_machine(GPU), a_machine(other)), pods=pods, **more)


def _small(name: str = "small", **fields: Any) -> Pod:
    return a_pod(name, cpu="100m", node="gpu-0", phase="Running", **fields)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"owner": ""}, "has no controller that would recreate it"),
        ({"annotations": {SAFE_TO_EVICT: "false"}}, f"is annotated {SAFE_TO_EVICT}: false"),
        ({"namespace": "kube-system"}, "is in kube-system without a PodDisruptionBudget"),
        ({}, "fits on no other node"),
    ],
)
def test_what_holds_a_node_is_named(fields: dict[str, Any], why: str) -> None:
    """A GPU node with one small pod stays, and the pod and the reason are told."""
    pod = _small(**fields)
    after = _after(snapshot(GPU, machines=(a_machine(GPU),), pods=(pod,)))
    assert after.removable == ()
    assert [hold.sentence for hold in after.unremovable] == [f"Node gpu-0 is kept: pod {pod.id} {why}."]


SYSTEM = _small("dns", namespace="kube-system")
SCRATCH = _small("scratch", local_storage=True)
DAEMON = a_pod("agent", cpu="3", node="cpu-0", phase="Running", owner="DaemonSet")
FIXED, QUEUED, SLICE = a_pool(autoscaled=False), a_pool("q", capacity="queued"), a_pool(together=2, maximum=2)


def _alone(pool: NodePool, count: int = 1, **more: Any) -> ClusterSnapshot:
    return snapshot(pool, machines=tuple(a_machine(pool, number) for number in range(count)), **more)


@pytest.mark.parametrize(
    ("cluster", "removable"),
    [
        # Pods of DaemonSets, ended ones, and those that may be evicted all the same, hold nothing.
        (
            _beside(
                a_pod("daemon", node="gpu-0", phase="Running", owner="DaemonSet"),
                a_pod("done", node="gpu-0", phase="Succeeded", owner=""),
                _small("safe", owner="", annotations={SAFE_TO_EVICT: "true"}),
            ),
            ["gpu-0"],
        ),
        (_beside(SCRATCH), ["gpu-0"]),
        (_beside(SCRATCH, autoscaling=Autoscaling(skip_local_storage=True)), []),
        (_beside(SYSTEM), []),
        (_beside(SYSTEM, autoscaling=Autoscaling(skip_system_pods=False)), ["gpu-0"]),
        (_alone(CPU, pods=(DAEMON,)), []),
        (_alone(CPU, pods=(DAEMON,), autoscaling=Autoscaling(daemons_count=False)), ["cpu-0"]),
        # Each of two could take the other's pod: only one goes.
        (
            _alone(
                CPU,
                2,
                pods=tuple(a_pod(f"p{n}", cpu="1500m", node=f"cpu-{n}", phase="Running") for n in range(2)),
            ),
            ["cpu-0"],
        ),
        (_alone(FIXED), []),
        (_alone(QUEUED), ["q-0"]),
        (_alone(SLICE, 2), ["cpu-0", "cpu-1"]),
        (_alone(SLICE, 2, pods=(BUSY,)), []),
    ],
)
def test_nodes_that_go(cluster: ClusterSnapshot, removable: list[str]) -> None:
    """After the idle time those nodes go whose pods the settings allow to move, and slices as a whole."""
    assert sorted(_after(cluster).removable) == removable


@pytest.mark.parametrize(
    ("at_first", "then", "state"),
    [
        ((), (), "draining"),
        ((), (_small("new"),), "running"),
        ((_small("old"),), (_small("old"), _small("new")), "draining"),
        ((_small("old"),), (_small("old"), _small("new", annotations={SAFE_TO_EVICT: "false"})), "running"),
        ((_small("old"),), (_small("old"), a_pod("new", cpu="5", node="gpu-0", phase="Running")), "running"),
    ],
)
def test_a_pod_that_comes_before_the_taint(
    tmp_path: Path, at_first: tuple[Pod, ...], then: tuple[Pod, ...], state: str
) -> None:
    """A node is drained one loop after its taint, which is removed again if a pod came to an empty node, or
    one that cannot be moved."""
    store = Store(tmp_path / "store")
    actuator: Any = create_autospec(Actuator, instance=True)
    fleet = Fleet(CLUSTER, store, NodeSettings())
    autoscaler = Autoscaler("gke", actuator, fleet, store, NodeSettings())
    fleet.save(a_machine(GPU))
    for now in (0.0, LATE):
        autoscaler.scale_down(_beside(*at_first, now=now))
    actuator.mark_to_be_deleted.assert_called_once()
    assert [machine.state for machine in fleet.all()] == ["running"]
    tainted = a_node(GPU, a_machine(GPU), taints=(*GPU.taints, MARK))
    cluster = _beside(*then, now=LATE)
    autoscaler.scale_down(replace(cluster, nodes={**cluster.nodes, tainted.name: tainted}))
    assert actuator.clean_to_be_deleted.call_count == (state == "running")
    assert [machine.state for machine in fleet.all()] == [state]


def test_nodes_that_wait_for_pods_of_a_request_stay() -> None:
    """A booked node is not removed."""
    assert _after(_alone(QUEUED), booked=frozenset({"q-0"})).removable == ()


def test_the_idle_time() -> None:
    """A node goes neither before it nor when a node was just added; in use, it starts anew."""
    empty = _alone(CPU)
    before = review(empty, NOTHING, frozenset(), None, NodeSettings())
    assert before.removable == ()
    late = replace(empty, now=LATE)
    assert review(late, before, frozenset(), 1.0, NodeSettings()).removable == ()
    used = review(_alone(CPU, pods=(BUSY,), now=300), before, frozenset(), None, NodeSettings())
    assert used.unneeded == {}
    assert review(late, used, frozenset(), None, NodeSettings()).removable == ()


def test_a_node_that_was_unneeded_before_goes_first() -> None:
    """A node that was unneeded before stays so if its pods fit on another one, which then is needed; an empty
    node precedes both."""
    pods = tuple(a_pod(f"w{n}", cpu="1", node=f"cpu-{n}", phase="Running") for n in (0, 1))
    before = ScaleDownReview({"cpu-1": 0.0}, {"cpu-1": 0.0}, (), ())
    both, three = _alone(CPU, 2, pods=pods, now=60), _alone(a_pool(minimum=2), 3, pods=pods, now=60)
    for cluster, earlier, unneeded in (
        (both, before, {"cpu-1": 0.0}),
        (both, NOTHING, {"cpu-0": 60}),
        (three, before, {"cpu-2": 60}),
    ):
        assert review(cluster, earlier, frozenset(), None, NodeSettings()).unneeded == unneeded


def test_the_autoscaler_goes_by_what_it_is_told() -> None:
    """Idle time, delay after a scale-up and utilization threshold are the cluster's settings."""
    empty = _alone(CPU, autoscaling=Autoscaling(idle_seconds=60, delay_after_add_seconds=120))
    assert _after(empty, 59).removable == ()
    assert _after(empty, 60).removable == ("cpu-0",)
    before = review(empty, NOTHING, frozenset(), None, NodeSettings())
    for now, leave in ((119.0, ()), (120.0, ("cpu-0",))):
        assert review(replace(empty, now=now), before, frozenset(), 0.0, NodeSettings()).removable == leave
    slow = NodeSettings(least_idle_seconds=90)
    assert review(replace(empty, now=89), before, frozenset(), None, slow).removable == ()
    other = a_pool("other", minimum=1)
    used = snapshot(CPU, other, machines=(a_machine(CPU), a_machine(other)), pods=(BUSY,))
    for utilization, leave in ((0.75, ()), (0.76, ("cpu-0",))):
        told = replace(used, autoscaling=Autoscaling(utilization=utilization))
        assert _after(told).removable == leave


def test_a_compute_class_has_a_delay_of_its_own() -> None:
    """Nodes of a ComputeClass are removed after its delay, the others after the cluster's."""
    fast, slow = a_pool("fast", labels={COMPUTE_CLASS: "cpu"}), a_pool("slow")
    classes = {"cpu": {"autoscalingPolicy": {"consolidationDelayMinutes": 1}}}
    cluster = snapshot(fast, slow, machines=(a_machine(fast), a_machine(slow)), classes=classes)
    for seconds, removable in ((59, ()), (60, ("fast-0",)), (600, ("fast-0", "slow-0"))):
        assert _after(cluster, seconds).removable == removable
