"""Queues that are held before they go."""

from dataclasses import replace
from typing import Any, cast

from ebbtide.clients.kubernetes import Api
from ebbtide.operations import queue_drain
from ebbtide.operations.state import ObjectReference
from tests.unit.operations.objects import STATE, Object, made

QUEUES = frozenset({ObjectReference("ClusterQueue", "", "research.cpu")})
STATE_WITH = replace(STATE, objects=STATE.objects | QUEUES)


def _workload(name: str, queue: str, *true: str) -> Object:
    conditions = [{"type": kind, "status": "True"} for kind in true]
    return made(name, status={"conditions": conditions, "admission": {"clusterQueue": queue}})


class _Api:
    """A cluster with one queue, whose work has quota at the first look."""

    def __init__(self) -> None:
        self.patched: list[tuple[str, Any]] = []
        self.looks = [[_workload("a", "research.cpu", "QuotaReserved")], []]

    def find(self, path: str) -> Object | None:
        """The queue, or the workloads as they are now."""
        if path.endswith("/workloads"):
            return {"items": self.looks.pop(0)}
        return {} if path.endswith("/research.cpu") else None

    def patch(self, path: str, body: Any) -> None:
        """Remember it."""
        self.patched.append((path.rpartition("/")[2], body))


def test_held_until_drained() -> None:
    """Queues that are there are held, and waited for until no work has quota of them."""
    api = _Api()
    assert queue_drain.drain(cast("Api", api), frozenset({"research.cpu", "gone"})) == 0
    assert api.patched == [("research.cpu", {"spec": {"stopPolicy": "HoldAndDrain"}})]
    assert api.looks == []


def test_who_has_quota() -> None:
    """Unfinished work that one of these queues has admitted."""
    names = frozenset({"research.cpu"})
    assert queue_drain.reserves_quota(_workload("a", "research.cpu", "QuotaReserved", "Admitted"), names)
    assert not queue_drain.reserves_quota(_workload("b", "theirs", "QuotaReserved"), names)
    assert not queue_drain.reserves_quota(_workload("c", "research.cpu", "QuotaReserved", "Finished"), names)
    assert not queue_drain.reserves_quota(_workload("d", "research.cpu"), names)


def test_which_queues() -> None:
    """Only the stack's queues are drained, and none if the cluster is deleted."""
    assert queue_drain.queues(STATE_WITH) == {"research.cpu"}
    assert queue_drain.queues(replace(STATE_WITH, owns_cluster=True)) == frozenset()
