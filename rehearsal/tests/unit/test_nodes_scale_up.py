"""Scale-up for pending pods, and messages to pods for which no pool can grow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.node_pools.machines import UNINITIALIZED
from ebbtide_rehearsal.cloud.node_pools.scale_up import (
    NoScaleUpInfo,
    ScaleUp,
    expansion_options,
    ignored,
    scale_up,
)
from ebbtide_rehearsal.cloud.node_pools.scheduling import Pod, Requirement
from ebbtide_rehearsal.cloud.node_pools.snapshot import ClusterSnapshot
from ebbtide_rehearsal.cloud.pools import Autoscaling, Expander
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_machine, a_node, a_pod, a_pool, backed_off, snapshot


def _scale_up(
    cluster: ClusterSnapshot, backoff: Mapping[str, float] | None = None
) -> tuple[ScaleUp | None, list[NoScaleUpInfo]]:
    return scale_up(cluster, list(expansion_options(cluster, backoff or {})))


def _grown(cluster: ClusterSnapshot, backoff: Mapping[str, float] | None = None) -> str:
    planned, _ = _scale_up(cluster, backoff)
    return f"{planned.pool.name}+{len(planned.zones)}" if planned else ""


@given(st.lists(st.sampled_from(["500m", "1", "3", "4", "5"]), max_size=30), st.integers(0, 6))
def test_growth_is_enough_and_never_above_the_maximum(sizes: list[str], maximum: int) -> None:
    """No pool grows beyond its maximum, never for nobody, and no pod is promised what it does not fit."""
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


def test_a_node_under_way_is_waited_for() -> None:
    """No node is ordered while a suitable one starts, joins, or installs its drivers."""
    pool, pod = a_gpu_pool(), a_pod(gpu=1)
    starting = a_machine(pool, state="starting")
    assert _grown(snapshot(pool, pods=(pod,))) == "gpu+1"
    assert _grown(snapshot(pool, machines=(starting,), pods=(pod,))) == ""
    machine = a_machine(pool)
    taints = (*pool.taints, NodeTaint(UNINITIALIZED, "true", "NoSchedule"))
    bare = {"cpu": a_node(pool, machine).allocatable["cpu"]}
    for node in (a_node(pool, machine, taints=taints), a_node(pool, machine, allocatable=bare)):
        cluster = snapshot(pool, machines=(machine,), pods=(pod,), nodes={machine.name: node})
        assert _grown(cluster) == ""


def test_a_full_node_is_not_counted_on() -> None:
    """Requests of running pods are subtracted from a node's capacity."""
    pool = a_pool()
    machine = a_machine(pool)
    running = a_pod("there", cpu="3", node=machine.name, phase="Running")
    cluster = snapshot(pool, machines=(machine,), pods=(running, a_pod(cpu="2")))
    assert _grown(cluster) == "cpu+1"


def test_what_daemons_take_is_not_offered() -> None:
    """A pod that fits a node but for its DaemonSets' pods stays unschedulable."""
    daemon = a_pod("agent", cpu="500m", owner="", unschedulable=False)
    assert _grown(snapshot(a_pool(), pods=(a_pod(cpu="4"),))) == "cpu+1"
    _, (unschedulable,) = _scale_up(snapshot(a_pool(), pods=(a_pod(cpu="4"),), daemons=(daemon,)))
    assert unschedulable.message == "pod didn't trigger scale-up: 1 Insufficient cpu"


def test_the_cheapest_pool_that_fits_grows_on_gke() -> None:
    """Price for each pod decides, whatever the names."""
    dear, cheap = a_pool("a", hourly=1.0), a_pool("b", hourly=0.1)
    assert _grown(snapshot(dear, cheap, pods=(a_pod(),))) == "b+1"


def test_a_pool_without_stock_is_let_alone() -> None:
    """While a pool is in backoff the next one grows, and alone it strands the pod with that reason."""
    dear, cheap = a_pool("a", hourly=1.0), a_pool("b", hourly=0.1)
    assert _grown(snapshot(dear, cheap, pods=(a_pod(),)), backed_off(cheap, 300)) == "a+1"
    _, (unschedulable,) = _scale_up(snapshot(cheap, pods=(a_pod(),)), backed_off(cheap, 300))
    assert unschedulable.message == "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    assert _grown(snapshot(cheap, pods=(a_pod(),), now=301.0), backed_off(cheap, 300)) == "b+1"


def test_every_pool_says_why_it_cannot_help() -> None:
    """The reasons of all pools are counted, in the scheduler's words."""
    full = a_pool("full", maximum=1)
    cluster = snapshot(
        a_pool("small"),
        a_gpu_pool(allocatable={"cpu": "96", "memory": "600Gi"}),
        full.having(allocatable={"cpu": "64", "memory": "256Gi"}),
        machines=(a_machine(full, state="starting"),),
        pods=(a_pod("one", cpu="64"), a_pod("two", cpu="64")),
    )
    planned, (unschedulable,) = _scale_up(cluster)
    assert planned is None
    assert unschedulable.message == (
        "pod didn't trigger scale-up: 1 Insufficient cpu, 1 max node group size reached, "
        "1 node(s) had untolerated taint {nvidia.com/gpu: present}"
    )


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
    planned, unschedulable = _scale_up(snapshot(a_pool(), pods=(pod,)))
    assert (planned, unschedulable) == (None, [])


def test_pods_of_a_request_trigger_no_scale_up() -> None:
    """Only waiting pods of a ProvisioningRequest get the event that they trigger no scale-up."""
    mark = {"autoscaling.x-k8s.io/consume-provisioning-request": "r"}
    pods = (a_pod("mine", annotations=mark), a_pod("there", annotations=mark, node="cpu-0"), a_pod("other"))
    ((pod, reason),) = ignored(snapshot(a_pool(), pods=pods))
    assert pod.name == "mine"
    assert reason.endswith("because it's consuming ProvisioningRequest default/r")


@pytest.mark.parametrize("change", [{"capacity": "queued"}, {"autoscaled": False}])
def test_some_pools_never_grow_for_a_pod(change: dict[str, Any]) -> None:
    """Queued pools get nodes for ProvisioningRequests alone, fixed ones not at all."""
    assert _grown(snapshot(a_pool(**change), pods=(a_pod(),))) == ""


def test_affinity_and_volumes_choose_the_zone() -> None:
    """A node comes where the pod's volume is, or where its affinity leads."""
    pool = a_pool(zones=("us-central1-a", "us-central1-b"))
    planned, _ = _scale_up(snapshot(pool, pods=(a_pod(zones=frozenset({"us-central1-b"})),)))
    assert planned is not None
    assert planned.zones == ("us-central1-b",)
    term = (Requirement("topology.kubernetes.io/zone", "In", ("us-central1-b",)),)
    planned, _ = _scale_up(snapshot(pool, pods=(a_pod(affinity=(term,)),)))
    assert planned is not None
    assert planned.zones == ("us-central1-b",)


def test_nodes_are_spread_over_zones() -> None:
    """Pods without a zone are spread over zones, least-populated first."""
    pool = a_pool(zones=("us-central1-a", "us-central1-b"))
    pods = tuple(a_pod(str(number), cpu="4") for number in range(4))
    planned, _ = _scale_up(snapshot(pool, machines=(a_machine(pool, state="starting"),), pods=pods))
    assert planned is not None
    assert sorted(planned.zones) == ["us-central1-a", "us-central1-b", "us-central1-b"]


PRIORITIES = "10: ['.*tight.*']\n50: ['.*roomy.*']"


@pytest.mark.parametrize(
    ("expander", "priorities", "expected"),
    [
        ("least-waste", "", "tight+3"),
        ("least-waste", PRIORITIES, "tight+3"),
        ("most-pods", PRIORITIES, "roomy+1"),
        ("priority", PRIORITIES, "roomy+1"),
        ("priority", "50: ['.*tight.*']", "tight+3"),
    ],
)
def test_expander_priorities_on_aks(expander: Expander, priorities: str, expected: str) -> None:
    """The expander's priorities apply only if the priority expander is configured."""
    roomy = a_pool("roomy", cloud="aks", allocatable={"cpu": "16", "memory": "64Gi"})
    tight = a_pool("tight", cloud="aks", allocatable={"cpu": "1", "memory": "1Gi"}, maximum=3)
    cluster = snapshot(roomy, tight, pods=tuple(a_pod(str(number)) for number in range(4)))
    cluster = replace(cluster, autoscaling=Autoscaling(expander=expander), priorities=priorities)
    assert _grown(cluster) == expected


@pytest.mark.parametrize("expander", ["random", "priority"])
def test_aks_leaves_to_chance_what_its_expander_does_not_settle(expander: Expander) -> None:
    """Now one pool grows and now another, for the same pod always the same; priorities are not there."""
    pools = [a_pool(name, cloud="aks") for name in ("one", "two")]
    autoscaling = Autoscaling(expander=expander)
    grown = [
        _grown(snapshot(*pools, pods=(a_pod(str(number)),), autoscaling=autoscaling)) for number in range(20)
    ]
    assert set(grown) == {"one+1", "two+1"}
    assert grown == [
        _grown(snapshot(*pools, pods=(a_pod(str(number)),), autoscaling=autoscaling)) for number in range(20)
    ]


def test_a_compute_class_orders_its_pools() -> None:
    """The first rule that a pool meets is its place; a pool of no rule is not used unless the class says."""
    marks = {COMPUTE_CLASS: "train"}
    spot = a_pool("spot", labels=marks, hourly=0.9)
    steady = a_pool("steady", labels=marks, hourly=0.1, capacity="on-demand")
    pod = a_pod(selector=marks)
    rules = {"priorities": [{"nodepools": ["spot"]}, {"machineFamily": "n2", "spot": False}]}
    assert _grown(snapshot(spot, steady, pods=(pod,), classes={"train": rules})) == "spot+1"
    assert (
        _grown(snapshot(spot, steady, pods=(pod,), classes={"train": rules}), backed_off(spot, 9))
        == "steady+1"
    )
    only = {"priorities": [{"machineType": "c4-standard-4"}]}
    assert _grown(snapshot(spot, pods=(pod,), classes={"train": only})) == ""
    anyway = {**only, "whenUnsatisfiable": "ScaleUpAnyway"}
    assert _grown(snapshot(spot, pods=(pod,), classes={"train": anyway})) == "spot+1"


def test_stopped_machines_are_room_to_grow() -> None:
    """A machine that was deallocated counts against the maximum, and can be started again."""
    pool = a_pool(cloud="aks", maximum=1, deallocates=True)
    assert _grown(snapshot(pool, machines=(a_machine(pool, state="stopped"),), pods=(a_pod(),))) == "cpu+1"


def test_a_slice_comes_as_a_whole() -> None:
    """One pod brings all of its nodes, and no slice comes where there is room for a part of one."""
    pool = a_pool(together=4, maximum=4)
    assert _grown(snapshot(pool, pods=(a_pod(),))) == "cpu+4"
    assert _grown(snapshot(a_pool(together=4, maximum=3), pods=(a_pod(),))) == ""
