"""Costs of pods, deleted ones included."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from ebbtide.values import clock
from ebbtide.work.runs.listing import Cost, PodHistory, cost_of
from tests.unit.workloads.clusters import DEV

_START = datetime(2026, 11, 23, 10, tzinfo=UTC)
_POOL = DEV.pool("t4-spot")
_ACCELERATOR = _POOL.accelerator


def _pod(uid: str, phase: str = "Running", **status: Any) -> dict[str, Any]:
    assert _ACCELERATOR is not None
    requests = {_ACCELERATOR.resource: str(_ACCELERATOR.count)}
    return {
        "metadata": {"uid": uid},
        "spec": {
            "nodeSelector": dict(_POOL.labels),
            "containers": [{"resources": {"requests": requests}}],
        },
        "status": {"phase": phase, "startTime": _START.isoformat(), **status},
    }


def test_a_deleted_pod_counts_until_it_is_missing() -> None:
    """A pod that was running when it was deleted has cost until then, and its successor until now."""
    history, hour = PodHistory(), timedelta(hours=1)
    with patch.object(clock, "now", lambda: _START + hour):
        history.add([_pod("a")])
        history.add([_pod("b")])
    with patch.object(clock, "now", lambda: _START + 9 * hour):
        history.add([_pod("b")])
    deleted = list(history.deleted())
    assert [(pod["metadata"]["uid"], time) for pod, time in deleted] == [("a", _START + hour)]
    price = _POOL.price.per_hour
    assert price is not None
    cost = cost_of([*deleted, (_pod("b"), _START + 2 * hour)], DEV, complete=True)
    assert cost == Cost(pytest.approx(3 * price), "USD", complete=True, seconds=3 * 3600)  # pyright: ignore[reportArgumentType]
    assert str(cost) == f"${3 * price:.2f}"


def test_a_pod_without_a_known_price() -> None:
    """The cost is unknown with a pool that the profile does not have, and before the first pod."""
    other = _pod("a")
    other["spec"]["nodeSelector"] = {"ebbtide.dev/pool": "other"}
    assert cost_of([(other, _START)], DEV, complete=True) is None
    assert cost_of([], DEV, complete=True) is None


def test_a_pod_pays_for_all_that_it_requests() -> None:
    """On a pool without accelerators, sidecars and requests of the pod itself count in its share."""
    pool = DEV.pool("cpu-spot")
    half = {"cpu": f"{pool.cpu_m // 2}m", "memory": f"{pool.memory_mib // 2}Mi"}
    sidecar = {"restartPolicy": "Always", "resources": {"requests": half}}
    container = {"resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
    price = pool.price.per_hour
    assert price is not None
    for spec in ({"initContainers": [sidecar]}, {"resources": {"requests": half}}):
        item = _pod("a") | {"spec": {"nodeSelector": dict(pool.labels), "containers": [container], **spec}}
        cost = cost_of([(item, _START + timedelta(hours=1))], DEV, complete=True)
        assert cost is not None
        assert cost.amount == pytest.approx(price / 2, rel=0.01)
