"""How long a pool is let alone whose nodes did not come."""

from pathlib import Path
from typing import Literal

import pytest

from ebbtide.rehearsal.cloud.faults import NO_STOCK, Fault
from ebbtide.rehearsal.cloud.nodes.fleet import Fleet
from ebbtide.rehearsal.cloud.nodes.settings import Settings
from ebbtide.rehearsal.cloud.pools import register
from ebbtide.rehearsal.cloud.store import Store
from tests.unit.rehearsal.node_pool import CLUSTER, a_pool


@pytest.mark.parametrize(
    ("cloud", "minutes"), [("gke", [5, 5, 5, 5, 5]), ("aks", [5, 10, 20, 30, 30])], ids=["gke", "aks"]
)
def test_a_pool_without_stock_is_tried_less_and_less_often_on_aks(
    tmp_path: Path, cloud: Literal["gke", "aks"], minutes: list[int]
) -> None:
    """Up to half an hour, and once its nodes have come it begins anew; GKE's time stays the same."""
    store, pool = Store(tmp_path / "store"), a_pool(cloud=cloud)
    register(store, pool)
    fleet = Fleet(CLUSTER, store, Settings())

    def waits() -> float:
        assert fleet.order(pool, pool.zones)
        return round((fleet.backoff[pool.name] - store.clock.now()) / 60)

    fault = store.ask(Fault(NO_STOCK, pool.name))
    assert [waits() for _ in minutes] == minutes
    store.lift(fault)
    assert fleet.order(pool, pool.zones) == ""
    store.ask(Fault(NO_STOCK, pool.name))
    assert waits() == 5
