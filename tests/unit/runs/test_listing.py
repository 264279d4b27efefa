"""Attempts and lost pods of a Job in the list, from its status, pods and events."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.clients.kubernetes import JSON, Api
from ebbtide.clients.kubernetes.objects import message_of
from ebbtide.work.runs.listing import ListedWorkload, list_workloads
from tests.unit.runs.waiting import PROFILE, QUEUED, SHORT, holder, local_queue, refused
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


class _Many(Api):
    """The API server of a namespace with two running Jobs, and many that wait for their quota."""

    def __init__(self, waiting: int) -> None:
        super().__init__(None, "vision")
        self._lists: dict[str, list[Object]] = {"jobs": [], "workloads": [], "localqueues": [local_queue()]}
        self._positions: list[Object] = []
        for number in range(waiting + 2):
            name, uid = f"train-{number}", f"j{number}"
            item = deepcopy(QUEUED)
            item["metadata"] |= {"name": name, "uid": uid}
            found = holder(name, "vision", 8) if number < 2 else refused(SHORT)
            found["metadata"] |= {"name": f"job-{name}", "labels": {"kueue.x-k8s.io/job-uid": uid}}
            if number < 2:
                item["spec"]["suspend"] = False
                item["status"] |= {"active": 1, "ready": 1, "startTime": "2026-11-20T10:00:00Z"}
                owner = {"batch.kubernetes.io/controller-uid": uid}
                running = pod(name, "Running", metadata={"namespace": "vision", "labels": owner})
                self._lists.setdefault("pods", []).append(running)
            else:
                position = {"metadata": {"name": f"job-{name}"}, "positionInLocalQueue": number - 2}
                self._positions.append(position)
            self._lists["jobs"].append(item)
            self._lists["workloads"].append(found)

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Object:  # noqa: ARG002 - as its base
        """Return the objects of a list."""
        kind = path.rpartition("/")[2]
        return {"items": self._positions if kind == "pendingworkloads" else self._lists.get(kind, [])}


def test_many_waiting_jobs_are_counted_and_their_reason_is_given_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number by state comes first, then the running ones and the newest, and --all lists each."""
    monkeypatch.setattr(Api, "of_user", lambda _context="": _Many(500))
    profile = ["--profile", PROFILE.json()]
    lines = CliRunner().invoke(app, ["jobs", "-n", "vision", *profile]).output.splitlines()
    assert lines[0] == "502 workloads in namespace vision: 500 queued, 2 running."
    assert len(lines) < 40
    text = " ".join(" ".join(lines).split())
    assert text.count("lacks 4 nvidia.com/gpu of free quota") == 1
    assert " and 19 more: queued for " in text
    assert "… and 480 more: --all lists them" in text
    every = CliRunner().invoke(app, ["jobs", "-n", "vision", "--all", *profile]).output
    assert every.count("train-") > 502
    assert " and 499 more: queued for " in " ".join(every.split())


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
