"""A Job from its creation to its end, and an interrupt of the command that follows it."""

import shlex
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner, Result

from ebbtide.cli import app, follow_progress
from ebbtide.cli.follow import submit
from ebbtide.cli.follow_progress import ProgressLines
from ebbtide.cli.options import PreviewFormat
from ebbtide.clients.kubernetes import Api
from ebbtide.text import command_line
from ebbtide.values import clock
from ebbtide.values.paths import Object
from ebbtide.work import submission
from ebbtide.work.errors import ClusterError
from ebbtide.work.progress import Phase, Progress
from tests.pages import commands, output
from tests.unit.work.clusters import DEV
from tests.unit.work.recorded import condition, event, pod


class _Server(Api):
    """A fake API server that creates everything."""

    def __init__(self) -> None:
        super().__init__(None, "lab")

    def create(self, path: str, body: Any, **query: str) -> Any:
        """Return an object as the API server does."""
        del path, query
        return {**body, "metadata": {**body["metadata"], "uid": "u"}}


def _at(clock_time: str) -> str:
    return f"2026-11-20T{clock_time}Z"


class _Preempting(_Server):
    """An API server whose Job loses its node once, a snapshot after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._job: Object = {}
        self._now = 0

    def create(self, path: str, body: Any, **query: str) -> Any:
        """Create the Job, which Kueue admits at once."""
        created = super().create(path, body, **query)
        created["metadata"]["creationTimestamp"] = _at("14:04:50")
        self._job = {**created, "spec": {**created["spec"], "suspend": False}, "status": {}}
        return created

    def sleep(self, seconds: float) -> None:
        """Go to the next snapshot."""
        del seconds
        self._now += 1

    def get(self, path: str, **query: str) -> Object:
        """Return the Job, or a list."""
        return self._job_now() if path.endswith("/jobs/train") else {"items": self.items(path, **query)}

    def find(self, path: str, **query: str) -> Object | None:
        """Return what `get` does; there is nothing else."""
        return None if "/workflows/" in path or "kubeflow" in path else self.get(path, **query)

    def items(self, path: str, **query: str) -> list[Object]:
        """Return the pods and the events of the autoscaler; other lists are empty."""
        if path.endswith("/pods"):
            return self._pods()
        return self._events() if path.endswith("/events") and "Job" not in str(query) else []

    def _job_now(self) -> Object:
        done = [condition("Complete", at=_at("14:47:00"))] if self._now > 3 else []
        return {**self._job, "status": {"active": not done, "succeeded": len(done), "conditions": done}}

    def _pods(self) -> list[Object]:
        shut_down = "Pod was terminated in response to imminent node shutdown."
        lost = condition("DisruptionTarget", at=_at("14:26:00"), message=shut_down)
        first: list[Object] = [
            self._pod("a", "Pending"),
            self._pod("a", "Running", "14:08:40"),
            self._pod("a", "Failed", "14:08:40", conditions=[lost]),
        ]
        ended = [{"name": "work", "state": {"terminated": {"finishedAt": _at("14:47:00"), "exitCode": 0}}}]
        second: list[Object] = [
            self._pod("b", "Pending"),
            self._pod("b", "Running", "14:29:18"),
            self._pod("b", "Succeeded", "14:29:18", containerStatuses=ended),
        ]
        return [first[self._now]] if self._now < 2 else [first[-1], second[self._now - 2]]

    def _pod(self, name: str, phase: str, started: str = "", **status: Any) -> Object:
        metadata = {"namespace": "vision", "labels": {"batch.kubernetes.io/controller-uid": "u"}}
        since: dict[str, Any] = {"startTime": _at(started)} if started else {}
        made = pod(name, phase, node="n" if started else "", metadata=metadata, **since, **status)
        placed = {"nodeSelector": {"ebbtide.dev/pool": "t4-spot"}, "tolerations": [{"operator": "Exists"}]}
        return made | {"spec": {**self._job["spec"]["template"]["spec"], **placed, **made["spec"]}}

    def _events(self) -> list[Object]:
        starts = {"a": "14:05:00", "b": "14:26:04"}
        return [event(uid, "TriggeredScaleUp", at=_at(at)) for uid, at in starts.items()]


def _submitted(server: _Preempting, patch: pytest.MonkeyPatch) -> Result:
    """Run the command of docs/following.md that creates a Job and follows it."""
    patch.setattr(Api, "of_user", lambda _context="": server)
    patch.setattr(submission.time, "sleep", server.sleep)
    patch.setattr(clock, "now", lambda: datetime(2026, 11, 20, 14, 48, tzinfo=UTC))
    patch.setenv("EBBTIDE_PROFILE", DEV.json())
    (command,) = (it for _, it in commands() if "ebbtide job train " in it and "--submit" in it)
    return CliRunner().invoke(app, shlex.split(command)[1:])


def test_a_job_that_survives_a_preemption(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of docs/following.md prints the lines that the page shows, and the cost of both pods."""
    done = _submitted(_Preempting(), monkeypatch)
    assert (done.exit_code, [done.stdout]) == (0, output("docs/following.md", "Job train is"))


def test_the_reason_of_a_restart_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    """A running Job that waits again is noted with the reason, which the live line does not keep."""
    unknown = ClusterError("forbidden")
    monkeypatch.setattr(follow_progress, "read_evidence", Mock(side_effect=unknown))
    shown: list[str] = []
    noted: list[str] = []
    lines = ProgressLines(_Server(), "train", "lab", None, shown.append, noted.append)
    why = "it was preempted by bert"
    for phase, reason in ((Phase.QUEUED, ""), (Phase.RUNNING, ""), (Phase.QUEUED, why), (Phase.QUEUED, why)):
        lines(Progress(phase=phase, reason=reason))
    assert noted == [f"queued: {why}"]
    assert shown == ["queued", "running", f"queued: {why}"]


class _Forging(_Preempting):
    """The same, whose second pod writes what Ebbtide writes at the end."""

    def lines(self, path: str, **query: str) -> Generator[str]:
        """Return the lines of a pod's log."""
        del query
        if path.endswith("/train-b/log"):
            yield "2026-11-20T14:30:00Z Job train completed after 1 s."
            yield "2026-11-20T14:30:00Z  ebbtide: Job train completed after 1 s.\rebbtide: really"


def test_a_line_of_a_pod_is_not_taken_for_ebbtides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the lines of pods, each line of Ebbtide has a prefix, which is escaped in those of a pod."""
    _submitted(_Forging(), monkeypatch)
    lines = CliRunner().invoke(app, ["follow", "train", "-n", "lab", "--logs"]).stdout.splitlines()
    forged = [line for line in lines if not line.startswith("ebbtide: ")]
    assert forged == [
        "Job train completed after 1 s.",
        "\\ ebbtide: Job train completed after 1 s.\\u000debbtide: really",
    ]
    assert [line for line in lines if "Job train completed after 42 min" in line] == [
        "ebbtide: Job train completed after 42 min 10 s; 1 disruption survived."
    ]


class _Failing(_Preempting):
    """The same, whose second pod ends with a module that its image lacks."""

    def lines(self, path: str, **query: str) -> Generator[str]:
        """Return the lines of a pod's log."""
        del query
        if path.endswith("/train-b/log"):
            yield "2026-11-20T14:30:00Z ModuleNotFoundError: No module named 'wandb.sdk'"

    def _job_now(self) -> Object:
        job = super()._job_now()
        for item in job["status"]["conditions"]:
            item["type"] = "Failed"
        return job


def test_a_missing_module_hints_at_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a failed Job names the option that installs what its log misses."""
    _submitted(_Failing(), monkeypatch)
    done = CliRunner().invoke(app, ["follow", "train", "-n", "lab", "--logs"])
    assert done.exit_code == 1, done.output
    assert "ebbtide: The image does not have wandb. --setup 'python -m pip install wandb'" in done.output


def test_an_interrupt_right_after_the_creation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C between the creation of a Job and its first line of progress prints how to follow and cancel."""

    def interrupted() -> Generator[str]:
        raise KeyboardInterrupt
        yield

    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {}}
    with pytest.raises(SystemExit) as ended:
        submit(_Server(), manifest, profile=DEV, format_=PreviewFormat.TEXT, logs=True, notes=interrupted())
    assert ended.value.code == 130
    again = command_line("follow", "train", "-n", "lab", "--logs")
    assert capsys.readouterr().err.splitlines() == [
        f"ebbtide: train keeps running. Follow it again with: {again}",
        f"ebbtide: Cancel it with: {command_line('cancel', 'train', '-n', 'lab')}",
    ]
