"""Queues that are held before they go."""

from dataclasses import replace
from typing import Any, cast

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.operations import queue_stops
from ebbtide.operations.engine.state import ObjectReference
from tests.unit.operations.objects import STATE, Object, made

QUEUES = frozenset({ObjectReference("ClusterQueue", "", "research.cpu")})
STATE_WITH = replace(STATE, objects=STATE.objects | QUEUES)


def _workload(name: str, queue: str, *true: str) -> Object:
    conditions = [{"type": kind, "status": "True"} for kind in true]
    return made(name, status={"conditions": conditions, "admission": {"clusterQueue": queue}})


class _Api:
    """A cluster with one queue, and its workloads at each look."""

    def __init__(self, *looks: list[Object]) -> None:
        self.patched: list[tuple[str, Any]] = []
        self.looks = list(looks)

    def find(self, path: str) -> Object | None:
        """The queue, or the workloads as they are now."""
        if path.endswith("/workloads"):
            return {"items": self.looks.pop(0)}
        return {} if path.endswith("/research.cpu") else None

    def patch(self, path: str, body: Any) -> None:
        """Remember it."""
        self.patched.append((path.rpartition("/")[2], body))


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
        queue_stops.hold(cast("Api", api), ["research.cpu"], drain=drain)
    assert api.queue["spec"] == {"stopPolicy": "HoldAndDrain"}
    assert queue_stops.is_asleep(api.queue)
    queue_stops.release(cast("Api", api), ["research.cpu"])
    assert api.queue["spec"] == {"stopPolicy": before}
    assert not queue_stops.is_asleep(api.queue)


def test_held_until_drained() -> None:
    """Queues that are there are held, and waited for until no work has quota of them."""
    api = _Api([_workload("a", "research.cpu", "QuotaReserved")], [])
    assert queue_stops.drain_until_free(cast("Api", api), frozenset({"research.cpu", "gone"})) == 0
    assert api.patched == [("research.cpu", {"spec": {"stopPolicy": "HoldAndDrain"}})]
    assert api.looks == []


def test_who_has_quota() -> None:
    """Unfinished work that one of these queues has admitted."""
    workloads = [
        _workload("a", "research.cpu", "QuotaReserved", "Admitted"),
        _workload("b", "theirs", "QuotaReserved"),
        _workload("c", "research.cpu", "QuotaReserved", "Finished"),
        _workload("d", "research.cpu"),
    ]
    assert queue_stops.reserving(cast("Api", _Api(workloads)), frozenset({"research.cpu"})) == 1


def test_which_queues() -> None:
    """Only the stack's queues are drained, and none if the cluster is deleted."""
    assert queue_stops.queues(STATE_WITH) == {"research.cpu"}
    assert queue_stops.queues(replace(STATE_WITH, owns_cluster=True)) == frozenset()
