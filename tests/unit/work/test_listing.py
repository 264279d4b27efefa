"""Attempts, lost pods and costs of a Job in the list, from its status, pods and events."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.clients.kubernetes import JSON, Api
from ebbtide.clients.kubernetes.objects import message_of
from ebbtide.values import clock
from ebbtide.values.paths import Object
from ebbtide.work.runs.listing import Cost, ListedWorkload, PodHistory, cost_of, list_workloads
from tests.unit.work.clusters import DEV
from tests.unit.work.recorded import event, job, pod
from tests.unit.work.waiting import PROFILE, QUEUED, SHORT, holder, local_queue, refused

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
    narrow = CliRunner().invoke(app, ["jobs", "-n", "vision", *profile], env={"COLUMNS": "48"}).output
    states = [word for line in narrow.splitlines()[2:] for word in line.split() if word[:3] == "run"]
    assert states
    assert set(states) == {"running"}
    assert max(map(len, narrow.splitlines())) <= 48
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
    """The event that stands for the tenth pod and all later ones is not a pod of its own."""
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
