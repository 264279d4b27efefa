"""Attempts and lost pods of a Job in the list, from its status, pods and events."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ebbtide.clients.kubernetes import JSON, Api
from ebbtide.work.objects import message_of
from ebbtide.work.runs.listing import ListedWorkload, list_workloads
from tests.unit.workloads.recorded import event, job, pod

Object = dict[str, Any]

_NOW = datetime(2026, 11, 20, 11, tzinfo=UTC)
_NAMES = [f"{index:02}" for index in range(30)]


class _Namespace(Api):
    """The API server of a namespace with one Job."""

    def __init__(self, item: Object, names: list[str], events: list[Object]) -> None:
        super().__init__(None, "vision")
        self._job, self._events = item, events
        labels = {"batch.kubernetes.io/controller-uid": "j"}
        self._pods = [
            pod(name, "Running", metadata={"namespace": "vision", "labels": labels}) for name in names
        ]

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Object:  # noqa: ARG002 - as its base
        """Return the objects of a list."""
        if path.endswith("/events"):
            kind = query["fieldSelector"].rpartition("=")[2]
            return {"items": [item for item in self._events if item["involvedObject"]["kind"] == kind]}
        lists = {"jobs": [self._job], "pods": self._pods}
        return {"items": lists.get(path.rpartition("/")[2], [])}


def _created(name: str, combined: int = 0) -> Object:
    """The Job controller's event for a new pod, or for several since the tenth."""
    prefix = "(combined from similar events): " if combined else ""
    made = event("j", "SuccessfulCreate", f"{prefix}Created pod: train-{name}")
    return made | {"involvedObject": {"kind": "Job", "uid": "j"}, "count": combined or 1}


def _row(names: list[str], events: list[Object], **status: Any) -> ListedWorkload:
    spec = {"parallelism": 30, "completions": 30}
    (row,) = list_workloads(_Namespace(job(spec=spec, **status), names, events), "vision", _NOW)
    return row


def _tries(row: ListedWorkload) -> tuple[int, int, int]:
    return row.attempts, row.preemptions, row.deleted_pods


@pytest.mark.parametrize("pods", [11, 12, 30])
def test_a_job_of_many_pods_has_lost_none(pods: int) -> None:
    """The event that stands for the tenth pod and all later ones is no pod of its own."""
    events = [*map(_created, _NAMES[:9]), _created(_NAMES[pods - 1], combined=pods - 9)]
    assert _tries(_row(_NAMES[:pods], events, active=pods)) == (1, 0, 0)


def test_a_lost_pod_among_many() -> None:
    """A pod that was replaced counts, though no event names it."""
    events = [*map(_created, _NAMES[:9]), _created(_NAMES[12], combined=4)]
    present = [*_NAMES[:10], *_NAMES[11:13]]
    assert _tries(_row(present, events, active=12)) == (2, 1, 1)


@pytest.mark.parametrize(
    "status",
    [
        {"active": 2, "terminating": 1},
        {"active": 2, "failed": 1},
        {"active": 2, "succeeded": 1},
        {"active": 2, "uncountedTerminatedPods": {"failed": ["02"]}},
        {"active": 2, "uncountedTerminatedPods": {"succeeded": ["02"]}},
    ],
)
def test_pods_that_the_job_knows_are_not_lost(status: Object) -> None:
    """A pod is lost only if the Job counts it neither as alive or terminating nor as ended."""
    events = list(map(_created, _NAMES[:3]))
    assert _row(_NAMES[:3], events, **status).preemptions == 0
    assert _row(_NAMES[:3], events, active=2).preemptions == 1


def test_the_message_of_a_combined_event() -> None:
    """A combined event has the message of the last one, without client-go's prefix."""
    assert message_of(_created("a", combined=3)) == message_of(_created("a")) == "Created pod: train-a"
    assert message_of({}) == ""
