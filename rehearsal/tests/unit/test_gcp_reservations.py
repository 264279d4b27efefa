"""Reservations in calendar mode on the fake Google Cloud: final requests, and machines in a period alone."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.recording.values import revealed
from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide_rehearsal.cloud.gcp.request import FUTURE_RESERVATION, NODE_POOL
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.node_pools.removal import expired
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Clock
from rehearsal.tests.unit.gcp_cloud import CLUSTER_ID, Cloud, with_cluster
from rehearsal.tests.unit.node_pool import a_machine, snapshot
from tests.declarations import GKE, only
from tests.synth import synth

_PERIOD = {"from": "2026-12-01T08:00Z", "until": "2026-12-08T08:00Z"}
_BEGIN, _END = (datetime(2026, 12, day, 8, tzinfo=UTC).timestamp() for day in (1, 8))


@pytest.fixture
def reserved(tmp_path: Path) -> tuple[Cloud, str]:
    """A cloud with a requested reservation and the pool that uses it; the reservation's id."""
    cloud = with_cluster(tmp_path)
    capacity: dict[str, Any] = {"kind": "reservation", **_PERIOD}
    recording = synth(only(GKE, machine="a3-megagpu-8g", capacity=capacity))
    _at(cloud, _BEGIN - 1)
    made = cloud.create(FUTURE_RESERVATION, recording.named("train-work-reservation").inputs)
    inputs: Any = revealed(dict(recording.named("train-work", NODE_POOL).inputs))
    cloud.create(NODE_POOL, inputs | {"cluster": CLUSTER_ID})
    return cloud, made.id


def _at(cloud: Cloud, time: float) -> None:
    cloud.store.clock = Clock(_BEGIN - 60, wall=lambda: time)


def test_machines_in_the_period_alone(reserved: tuple[Cloud, str]) -> None:
    """The pool gets machines from the begin of its reservation to its end."""
    cloud, _ = reserved
    pool = cloud.node_pools()["work"]
    end = 60 + 7 * 24 * 3600
    assert pool.reserved == (60, end)
    assert pool.hourly is not None
    assert pool.hourly < 1  # its disk: the machine is billed by the reservation
    fleet = Fleet(CLUSTER_ID, cloud.store, NodeSettings())
    for time, has_stock in ((_BEGIN - 1, False), (_BEGIN, True), (_END - 1, True), (_END, False)):
        _at(cloud, time)
        assert (fleet.order(pool, pool.zones) == {}) == has_stock
    for now, is_over in ((end - 1, False), (end, True)):
        assert bool([*expired(snapshot(pool, machines=(a_machine(pool),), now=now))]) == is_over


def test_a_request_is_final(reserved: tuple[Cloud, str]) -> None:
    """A submitted request is neither changed nor deleted before its end."""
    cloud, identity = reserved
    inputs: Any = cloud.read(identity).inputs
    later = {**inputs, "timeWindow": {**inputs["timeWindow"], "endTime": "2026-12-09T08:00:00Z"}}
    assert cloud.diff(identity, later).changed == ("timeWindow",)
    with pytest.raises(RefusedError, match="cannot be updated in calendar mode"):
        cloud.update(identity, later)
    with pytest.raises(RefusedError, match="cannot be deleted before its end"):
        cloud.delete(identity)
    _at(cloud, _END)
    cloud.delete(identity)
    assert cloud.store.resources("gcp", FUTURE_RESERVATION) == []
