"""Machines that do not come: how long they are waited for, and how long their pool backs off."""

from pathlib import Path
from typing import Literal

import pytest

from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet, NodeSettings
from ebbtide_rehearsal.cloud.node_pools.machines import node_group
from ebbtide_rehearsal.cloud.node_pools.scale_up import expansion_options, scale_up
from ebbtide_rehearsal.cloud.pools import NodePool, register
from ebbtide_rehearsal.cloud.store import NO_STOCK, QUOTA, Clock, InjectedFault, Store
from rehearsal.tests.unit.node_pool import CLUSTER, a_pod, a_pool, backed_off, snapshot


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_pool_without_stock_is_tried_less_and_less_often(
    tmp_path: Path, cloud: Literal["gke", "aks"]
) -> None:
    """Up to half an hour; nodes that come do not end it, three hours without a failure do."""
    store, pool = Store(tmp_path / "store"), a_pool(cloud=cloud)
    register(store, pool)
    fleet, name = Fleet(CLUSTER, store, NodeSettings()), node_group(pool, pool.zones[0])

    def minutes(at: float) -> float:
        _at(store, at)
        assert fleet.order(pool, pool.zones)
        return (fleet.backoff.until[name] - at) / 60

    fault = store.inject(InjectedFault(NO_STOCK, pool.name))
    assert [minutes(at) for at in (0, 301, 902, 2103, 3904)] == [5, 10, 20, 30, 30]
    store.remove_fault(fault)
    assert fleet.order(pool, pool.zones) == {}
    store.inject(InjectedFault(NO_STOCK, pool.name))
    assert minutes(5800) == 30
    assert minutes(5800 + 3 * 3600 + 1) == 5


def test_failures_at_the_same_time_count_once(tmp_path: Path) -> None:
    """A node group that is refused again during its backoff does not back off for longer."""
    store, pool = Store(tmp_path / "store"), a_pool()
    register(store, pool)
    _at(store, 0)
    store.inject(InjectedFault(NO_STOCK, pool.name))
    fleet = Fleet(CLUSTER, store, NodeSettings())
    for _ in range(3):
        assert fleet.order(pool, pool.zones)
    assert fleet.backoff.until == backed_off(pool, 300)


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
