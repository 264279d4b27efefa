"""Jobs handed to a cluster, without one: what cannot be reached, and what stops answering."""

import itertools
import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ebbtide.cli.follow_progress import ProgressLines, narration
from ebbtide.cli.run import confirm_end
from ebbtide.clients.kubernetes import JSON, Api, ApiError
from ebbtide.text import command_line, install_command
from ebbtide.work import submission
from ebbtide.work.errors import ClusterError, WorkloadError
from ebbtide.work.evidence import USER
from ebbtide.work.progress import Phase, Progress, progress_line
from tests.commands import refused
from tests.repository import ROOT
from tests.unit.work.clusters import DEV
from tests.unit.work.recorded import NO_NODE, condition, job, pod, unscheduled

_JOB = ("job", "train", "--image", "busybox", "--pool", "cpu-spot", "--profile", DEV.json())


def _kubeconfig(path: Path, server: str) -> Path:
    context = {"name": "dev", "context": {"cluster": "dev", "user": "me", "namespace": "vision"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "contexts": [context],
        "clusters": [{"name": "dev", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
    }
    path.write_text(json.dumps(config))
    return path


def test_a_context_that_is_not_there(tmp_path: Path) -> None:
    """The error names it."""
    file = _kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    error = refused(*_JOB, "--submit", "--context", "prod", KUBECONFIG=str(file))
    assert error.startswith("No kubeconfig has a usable context prod: ")


def test_a_context_without_a_cluster() -> None:
    """An option that would reach nothing is refused."""
    assert refused(*_JOB, "--context", "prod").startswith("--context needs --submit")


def test_a_name_that_is_none() -> None:
    """Never becomes a part of a path."""
    assert refused("follow", "../../pods", "-n", "A/b").splitlines() == [
        "'../../pods' is not a valid Job name.",
        "namespace is 'A/b', which is not a valid namespace name.",
    ]


def test_without_the_client() -> None:
    """The error says what is missing, and what to do."""
    code = (
        "import sys; sys.modules['kubernetes'] = None\n"
        "sys.argv = ['ebbtide', 'follow', 'train']\n"
        "from ebbtide.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Access to a cluster needs the official Kubernetes client")
    assert done.stderr.endswith(f"Install it with: {install_command('cluster')}.\n")


class _FakeApi(Api):
    """A fake API server with fixed answers, one after the other."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(None, "vision")
        self._answers = iter(answers)
        self._pods: list[Any] = []

    def get(self, path: str, *, accept: str = JSON, **query: str) -> dict[str, Any]:  # noqa: ARG002 - as its base
        """A Job, or its pods."""
        if path.endswith("/pods"):
            assert query["labelSelector"].startswith("batch.kubernetes.io/controller-uid=")
            return {"items": self._pods}
        if path.endswith("/events"):
            raise ApiError(403, "you may not")
        match next(self._answers):
            case (made, *pods):
                self._pods = pods
                return made
            case error:
                raise error


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds of each sleep, without sleeping."""
    seconds: list[float] = []
    monkeypatch.setattr(submission.time, "sleep", seconds.append)
    return seconds


_DONE = job(conditions=(condition("Complete"),), succeeded=1)


def _followed(*answers: Any) -> list[str]:
    heard: list[str] = []

    def say(state: Progress) -> None:
        heard.append(progress_line(state))

    submission.follow(_FakeApi(answers[0], *answers), "train", "vision", say, heard.append)
    return heard


def test_silence_ends_nothing(slept: list[float]) -> None:
    """A control plane that is upgraded does not answer for a while."""
    silence = ApiError(503, "Nobody answers.")
    waiting = (job(active=1), unscheduled("a"))
    assert _followed(waiting, silence, (job(active=1), pod("a", "Running")), (_DONE,)) == [
        f"waiting for a node: no node can take it: {NO_NODE.partition('. preemption')[0]}",
        "The API server could not answer (status 503): Nobody answers.",
        "running",
        "completed",
    ]
    assert len(slept) == 3
    assert min(slept) >= 2


@pytest.mark.parametrize(("seconds", "pause"), [(0.1, 2.0), (0.5, 5.0), (60.0, 15.0)])
def test_the_pause_between_snapshots(
    monkeypatch: pytest.MonkeyPatch, slept: list[float], seconds: float, pause: float
) -> None:
    """Snapshots of a large sweep take a tenth of the time, and are at most 15 seconds apart; the time in
    which the progress is shown does not count."""
    clock = itertools.count()
    answers = _FakeApi(*[(job(active=1), pod("a", "Running"))] * 2, (_DONE,))
    monkeypatch.setattr(submission.time, "monotonic", lambda: seconds * next(clock))

    def show(_: Progress) -> None:
        next(clock)

    submission.follow(answers, "train", "vision", show, str)
    assert slept == [pause]


@pytest.mark.usefixtures("slept")
def test_silence_that_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is an error in the end, and at once where nothing was heard yet."""
    with pytest.raises(ClusterError, match="Nobody answers"):
        _followed(ApiError(503, "Nobody answers."))
    clock = iter(range(0, 100_000, 400))
    monkeypatch.setattr(submission.time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(ClusterError, match="Nobody answers"):
        _followed((job(active=1),), *[ApiError(503, "Nobody answers.")] * 9)


@pytest.mark.usefixtures("slept")
def test_a_job_that_is_deleted_meanwhile() -> None:
    """A Job that is deleted while it is followed has no result."""
    with pytest.raises(ClusterError, match="was deleted before its end was observed"):
        _followed((job(active=1),), ApiError(404, 'jobs.batch "train" not found'))


@pytest.mark.usefixtures("slept")
def test_a_job_that_is_replaced_meanwhile() -> None:
    """Another Job of its name is not followed: the message has whose it is, and how to follow it."""
    metadata = {**_DONE["metadata"], "uid": "k", "annotations": {USER: "bert"}}
    again = command_line("follow", "train", "-n", "vision")
    with pytest.raises(ClusterError, match=rf"Job train was replaced by bert, .* with: {again}$"):
        _followed((job(active=1),), ({**_DONE, "metadata": metadata},))


def test_the_end_comes_after_the_last_lines() -> None:
    """The rest of the log is read before the end is shown."""
    shown: list[str] = []
    lines = ProgressLines(
        _FakeApi(), "train", "vision", None, shown.append, before_end=lambda: shown.append("the last line")
    )
    for phase in (Phase.RUNNING, Phase.COMPLETED):
        lines(Progress(phase=phase, reason=""))
    assert shown == ["running", "the last line", "completed"]


@pytest.mark.parametrize(
    ("owner", "conditions", "message"),
    [
        ("anna", (), "^Nothing was changed: Job train .* is that of anna, .* no terminal"),
        ("bert", (), ""),
        ("anna", (condition("Failed"),), ""),
    ],
)
def test_a_running_job_of_another_is_not_replaced_unasked(
    owner: str, conditions: tuple[Any, ...], message: str
) -> None:
    """The question names whose running Job ends; one that has ended is nobody's loss."""
    earlier = job(conditions=conditions, active=1)
    earlier["metadata"]["annotations"] = {USER: owner}
    if message:
        with pytest.raises(WorkloadError, match=message):
            confirm_end(earlier, "bert", "vision")
        return
    assert confirm_end(earlier, "bert", "vision") == (
        "" if conditions else "The earlier Job train, yours, had not ended, with 1 pod: it is replaced."
    )


def test_a_terminal_has_one_line() -> None:
    """The progress is one line of the terminal, which is removed when the Job ends."""
    file = StringIO()
    with narration(Console(file=file, force_terminal=True, width=60)) as say:
        say("queued")
    assert "queued" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K")


def test_a_pipe_has_a_line_for_each_change() -> None:
    """None twice, and none broken."""
    file = StringIO()
    with narration(Console(file=file, width=20)) as say:
        for text in ("queued:" + " why" * 9, "running [1]", "running [1]", "running [2]"):
            say(text)
    assert file.getvalue().splitlines() == ["queued:" + " why" * 9, "running [1]", "running [2]"]
