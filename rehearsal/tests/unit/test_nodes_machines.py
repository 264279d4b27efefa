"""Machines and their nodes: as the clouds make them, as they fail to come, and as they are taken."""

from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import (
    UNINITIALIZED,
    NodePool,
    is_recreated,
    new_name,
    node_group,
    node_info,
    provider_id,
)
from ebbtide.autoscaler.scale_up import expansion_options, missing_machines, scale_up
from ebbtide.autoscaler.scheduling import read_pod
from ebbtide.autoscaler.snapshot import read_node
from ebbtide_rehearsal.cloud.node_pools.actuator import node
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.node_pools.loop import NO_PLUGIN, has_driver, objects
from ebbtide_rehearsal.cloud.node_pools.removal import expired, surplus, victims
from ebbtide_rehearsal.cloud.pools import register
from ebbtide_rehearsal.cloud.store import NO_STOCK, QUOTA, RECLAIM, Clock, InjectedFault, Store
from ebbtide_rehearsal.control_plane.pod_status import SHUTDOWN, End, ended
from rehearsal.tests.unit.node_pool import (
    CLUSTER,
    a_gpu_pool,
    a_machine,
    a_node,
    a_pod,
    a_pool,
    backed_off,
    snapshot,
)

AKS = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/tried"


def test_names_are_the_clouds_own_and_never_come_twice() -> None:
    """Short enough for a host name, with the pool in them, each once."""
    gke, aks = a_pool("a" * 40), a_pool("work", cloud="aks", cluster=AKS)
    names = [new_name(gke, "us-central1-a", number, 0) for number in range(50)]
    assert len(set(names)) == 50
    assert all(len(name) <= 63 and name.startswith("gke-tried-aaaa") for name in names)
    name = new_name(aks, "eastus-1", 37, 0)
    assert name.endswith("-vmss000011")
    machine = a_machine(aks, name=name)
    assert provider_id(machine).startswith("azure:///subscriptions/s/resourceGroups/mc_rg_tried/providers/")
    assert provider_id(machine).endswith("-vmss/virtualMachines/37")


def test_a_new_node_does_not_show_its_accelerators_yet() -> None:
    """Accelerators are in the autoscaler's node template, but not in a new node's status."""
    pool = a_gpu_pool(capacity="queued")
    registered = read_node(node(pool, a_machine(pool, request="default/r"), "v1.36.2"))
    assert "nvidia.com/gpu" not in registered.allocatable
    assert any(taint.key == UNINITIALIZED for taint in registered.taints)
    assert registered.labels["autoscaling.gke.io/provisioning-request"].startswith("gke-")
    assert node_info(pool, "us-central1-a", ()).free["nvidia.com/gpu"] == 1


@pytest.mark.parametrize(
    ("changes", "labels", "daemon", "image", "expected"),
    [
        ({"driver_installed": True}, {}, "", "", True),
        ({}, {}, "", "", False),
        ({}, {}, "ours", "cos-nvidia-installer:fixed", True),
        ({}, {}, "ours", "gke-nvidia-installer:fixed", True),
        ({}, {}, "nvidia-device-plugin-daemonset", "", False),
        ({}, {NO_PLUGIN: "true"}, "nvidia-device-plugin-daemonset", "", True),
        ({}, {NO_PLUGIN: "true"}, "ours", "cos-nvidia-installer:fixed", False),
        ({"cloud": "aks"}, {}, "nvidia-device-plugin", "", True),
        ({"cloud": "aks", "accelerator_resource": "amd.com/gpu"}, {}, "", "", False),
        ({"cloud": "aks", "accelerator_resource": "amd.com/gpu"}, {}, "amdgpu-device-plugin", "", True),
    ],
)
def test_accelerators_are_seen_with_their_driver(
    changes: dict[str, Any], labels: dict[str, str], daemon: str, image: str, *, expected: bool
) -> None:
    """GKE's installer suffices with GKE's own plugin; elsewhere NVIDIA's plugin must run."""
    given: dict[str, Any] = {"driver_installed": False, **changes}
    pool = a_gpu_pool("gpu", **given)
    bare = a_node(pool, a_machine(pool), allocatable={"cpu": Decimal(4)}, labels=labels)
    raw = {
        "metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": daemon}]},
        "spec": {"initContainers": [{"image": image}]},
    }
    pods = [a_pod(node=bare.name, phase="Running", owner="DaemonSet", raw=raw)] if daemon else []
    assert has_driver(bare, pool, pods) is expected


@pytest.mark.parametrize("shutdown", [True, False])
def test_a_pod_s_end_is_a_kubelet_s(*, shutdown: bool) -> None:
    """A shutdown leaves reason, message and condition; a plain end leaves the exit status alone."""
    raw = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}}
    status = ended(raw, {"c": End(0)}, shutdown=shutdown)
    assert status["phase"] == ("Failed" if shutdown else "Succeeded")
    kinds = {condition["type"]: condition for condition in status["conditions"]}
    assert ("DisruptionTarget" in kinds) == shutdown
    assert status.get("message") == (SHUTDOWN if shutdown else None)
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize(("cloud", "millicores"), [("gke", 400), ("aks", 760)])
def test_the_clouds_own_pods_ask_for_what_the_catalog_says(cloud: Any, millicores: int) -> None:
    """All Deployments together are the footprint of the cloud's system pods."""
    total = sum(
        body["spec"]["replicas"] * read_pod(body["spec"]["template"]).requests["cpu"] * 1000
        for _, body in objects(cloud)
        if body["kind"] == "Deployment"
    )
    assert total == millicores


@given(st.integers(0, 9), st.floats(0.01, 1))
def test_a_share_is_rounded_up(count: int, share: float) -> None:
    """At least the share is taken, and never a node too many, the oldest first."""
    pool = a_pool()
    machines = tuple(a_machine(pool, number, created=float(-number)) for number in range(count))
    taken = victims(
        InjectedFault(RECLAIM, "cp*", details={"share": share}), snapshot(pool, machines=machines)
    )
    assert count * share <= len(taken) < count * share + 1
    assert [machine.name for machine in taken] == [
        f"cpu-{number}" for number in reversed(range(count - len(taken), count))
    ]


def test_a_count_is_of_all_pools_that_match() -> None:
    """Neither on-demand machines nor those of other pools are taken."""
    pools = (a_pool("a-1"), a_pool("a-2"), a_pool("a-3", capacity="on-demand"), a_pool("b"))
    machines = tuple(a_machine(pool, number) for pool in pools for number in range(2))
    taken = victims(InjectedFault(RECLAIM, "a-*", details={"count": 3}), snapshot(*pools, machines=machines))
    assert [machine.name for machine in taken] == ["a-1-0", "a-1-1", "a-2-0"]


@pytest.mark.parametrize(
    ("change", "now", "taken"),
    [
        ({"capacity": "preemptible"}, 24 * 3600 - 1, False),
        ({"capacity": "preemptible"}, 24 * 3600, True),
        ({"capacity": "spot"}, 1e9, False),
        ({"capacity": "flex-start", "max_run_seconds": 600}, 599, False),
        ({"capacity": "flex-start", "max_run_seconds": 600}, 600, True),
    ],
)
def test_time_runs_out(change: dict[str, Any], now: float, *, taken: bool) -> None:
    """A preemptible machine has 24 hours, a flex-start one its maximum run, a spot one no limit."""
    pool = a_pool(**change)
    taken_back = list(expired(snapshot(pool, machines=(a_machine(pool),), now=now)))
    assert bool(taken_back) == taken


def test_only_gke_makes_a_taken_spot_machine_anew() -> None:
    """A reclaimed machine is replaced by a GKE instance group, and reduces an AKS scale set by one."""
    assert is_recreated(a_machine(a_pool()), "spot")
    assert not is_recreated(a_machine(a_pool(cloud="aks")), "spot")
    assert not is_recreated(a_machine(a_pool()), "flex-start")


def test_pools_are_born_with_their_size_and_keep_their_minimum() -> None:
    """An autoscaled pool falls to its minimum later; a fixed one is kept at its size, up and down."""
    scaled, fixed = a_pool("s", initial=3, minimum=1), a_pool("f", initial=2, autoscaled=False)
    new = snapshot(scaled, fixed)
    assert [(pool.name, count) for pool, count in missing_machines(new, ())] == [("s", 3), ("f", 2)]
    assert [(pool.name, count) for pool, count in missing_machines(new, ("s", "f"))] == [("s", 1), ("f", 2)]
    machines = tuple(a_machine(fixed, number, created=float(number)) for number in range(3))
    assert [machine.name for machine in surplus(snapshot(fixed, machines=machines))] == ["f-2"]


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_pool_without_stock_is_tried_less_and_less_often(
    tmp_path: Path, cloud: Literal["gke", "aks"]
) -> None:
    """Up to half an hour, failures at once counted once; nodes that come do not end it, three hours without
    a failure do."""
    store, pool = Store(tmp_path / "store"), a_pool(cloud=cloud)
    register(store, pool)
    fleet, name = Fleet(CLUSTER, store, NodeSettings()), node_group(pool, pool.zones[0])

    def minutes(at: float) -> float:
        _at(store, at)
        assert fleet.order(pool, pool.zones)
        return (fleet.backoff.until[name] - at) / 60

    fault = store.inject(InjectedFault(NO_STOCK, pool.name))
    assert [minutes(at) for at in (0, 0, 301, 902, 2103, 3904)] == [5, 5, 10, 20, 30, 30]
    store.remove_fault(fault)
    assert fleet.order(pool, pool.zones) == {}
    store.inject(InjectedFault(NO_STOCK, pool.name))
    assert minutes(5800) == 30
    assert minutes(5800 + 3 * 3600 + 1) == 5


def _flex(tmp_path: Path) -> tuple[Store, NodePool, Fleet]:
    store, pool = Store(tmp_path / "store"), a_pool(capacity="flex-start")
    register(store, pool)
    store.clock = Clock(0.0, wall=lambda: 0.0)
    return store, pool, Fleet(CLUSTER, store, NodeSettings())


def _at(store: Store, seconds: float) -> None:
    store.clock = Clock(0.0, wall=lambda: seconds)


def test_flex_start_is_given_up_after_a_quarter_of_an_hour(tmp_path: Path) -> None:
    """Until then its machines are under way and no other pool grows; then the pool backs off, unbilled."""
    store, pool, fleet = _flex(tmp_path)
    store.inject(InjectedFault(NO_STOCK, pool.name))
    assert fleet.order(pool, pool.zones * 2) == {}
    _at(store, 899)
    fleet.recheck_stock(pool)
    assert [machine.state for machine in fleet.all()] == ["waiting", "waiting"]
    cluster = snapshot(pool, machines=tuple(fleet.all()), pods=(a_pod(),))
    assert scale_up(cluster, list(expansion_options(cluster, fleet.backoff.until))) == (None, [])
    _at(store, 900)
    fleet.recheck_stock(pool)
    assert fleet.all() == []
    assert fleet.backoff.until == backed_off(pool, 1200)
    kinds = [event.kind for event in store.events()]
    assert kinds == ["no-stock-yet", "no-node"]


def test_flex_start_comes_once_there_is_stock(tmp_path: Path) -> None:
    """A flex-start machine is billed from its start, and a later request gets machines with other names."""
    store, pool, fleet = _flex(tmp_path)
    fault = store.inject(InjectedFault(NO_STOCK, pool.name))
    assert fleet.order(pool, pool.zones) == {}
    _at(store, 600)
    assert fleet.order(pool, pool.zones) == {}
    store.remove_fault(fault)
    fleet.recheck_stock(pool)
    first, second = fleet.all()
    assert first.name != second.name
    assert {(machine.state, machine.created, machine.since) for machine in (first, second)} == {
        ("starting", 600, 690)
    }


def test_a_quota_is_not_waited_for(tmp_path: Path) -> None:
    """A request above the quota is refused at once, and the pool backs off."""
    store, pool, fleet = _flex(tmp_path)
    store.inject(InjectedFault(QUOTA, details={"limit": 0}))
    assert fleet.order(pool, pool.zones)
    assert fleet.all() == []
    assert fleet.backoff.until
