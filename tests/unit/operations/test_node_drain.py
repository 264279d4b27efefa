"""Drain of nodes: what waits, what moves at once, and when it ends."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from ebbtide import clock
from ebbtide.kubernetes_api import Api, ApiError
from ebbtide.operations import node_drain
from ebbtide.operations.node_drain import SINCE, DrainedPool

_BEGUN = datetime(2026, 11, 22, 12, tzinfo=UTC)
_POOL = DrainedPool("cpu", "pool", "cpu-old", timedelta(hours=2))


class _Api:
    """An API server with one node, whose pods end or are evicted."""

    def __init__(self, **pods: dict[str, Any]) -> None:
        self.node: dict[str, Any] = {"metadata": {"name": "n1"}, "spec": {}}
        self.pods = {
            name: {
                "metadata": {"name": name, "namespace": "lab", **pod.pop("metadata", {})},
                "spec": {"nodeName": "n1", "restartPolicy": "Never", **pod},
                "status": {"phase": "Running"},
            }
            for name, pod in pods.items()
        }
        self.evicted: list[str] = []
        self.guarded: set[str] = set()

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """List nodes or pods."""
        if path.endswith("/nodes"):
            return [self.node] if query["labelSelector"] == "pool=cpu-old" else []
        return list(self.pods.values())

    def patch(self, _path: str, body: dict[str, Any]) -> None:
        """Patch the node."""
        self.node["spec"] |= body["spec"]
        self.node["metadata"]["annotations"] = body["metadata"]["annotations"]

    def create(self, path: str, _body: dict[str, Any]) -> None:
        """Evict a pod."""
        name = path.split("/")[-2]
        if name in self.guarded:
            raise ApiError(429, "Cannot evict pod as it would violate the pod's disruption budget.")
        self.evicted.append(name)
        del self.pods[name]


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The passed hours; each wait is half an hour."""
    passed = [0.0]
    monkeypatch.setattr(clock, "now", lambda: _BEGUN + timedelta(hours=sum(passed)))

    def half_an_hour(_seconds: float) -> None:
        passed.append(0.5)

    monkeypatch.setattr("time.sleep", half_an_hour)
    return passed


def _drained(api: _Api) -> list[str]:
    lines: list[str] = []
    node_drain.drain(cast("Api", api), [_POOL], lines.append)
    return lines


def test_services_move_at_once_and_jobs_have_time(hours: list[float]) -> None:
    """A pod of a Job is evicted when the time is over; pods that stay on their node are left alone."""
    daemon = {"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}}
    static = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}
    api = _Api(train={}, web={"restartPolicy": "Always"}, daemon=daemon, static=static)
    lines = _drained(api)
    assert api.evicted == ["web", "train"]
    assert sum(hours) == 2.5
    assert api.node["spec"] == {"unschedulable": True}
    assert lines[0] == (
        "pool cpu: 2 pods on its old nodes (lab/train, lab/web); they have until 2026-11-22 14:00 UTC"
    )
    assert lines[-1].endswith("evicting")


def test_an_interrupted_drain_does_not_begin_again(hours: list[float]) -> None:
    """The time of the cordon is on the node."""
    api = _Api(train={})
    earlier = (_BEGUN - timedelta(hours=1.5)).isoformat()
    api.node["metadata"]["annotations"] = {SINCE: earlier}
    _drained(api)
    assert sum(hours) == 1.0
    assert api.node["metadata"]["annotations"] == {SINCE: earlier}


def test_a_disruption_budget_delays_the_end_for_an_hour(hours: list[float]) -> None:
    """Then the pool is deleted with the pod."""
    api = _Api(train={})
    api.guarded = {"train"}
    _drained(api)
    assert api.evicted == []
    assert sum(hours) == 3.0


def test_a_pool_without_nodes_needs_no_drain(hours: list[float]) -> None:
    """Nothing is waited for."""
    api = _Api(train={})
    node_drain.drain(cast("Api", api), [DrainedPool("cpu", "pool", "empty", timedelta(0))], pytest.fail)
    assert hours == [0.0]
