"""Sessions: their Job, and the shell script that ends them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide.placement.profile import TeamProfile
from ebbtide.values.paths import Object
from ebbtide.work.errors import WorkloadError
from ebbtide.work.runs.folder import read_folder
from ebbtide.work.runs.sessions import reclaim_warning, session
from ebbtide.work.tasks import CodeIn
from tests.unit.work.clusters import DEV

Keeper = tuple["subprocess.Popen[bytes]", str]

_TERMINAL = "import pty, sys; pty.spawn(['env', sys.argv[1], 'sh', '-i'])"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a program."""
    (tmp_path / "train.py").write_text("pass")
    return tmp_path


def _job(root: Path, idle: str = "1h", **fields: Any) -> Object:
    given: Object = {"image": "python", "pool": "t4-spot", "gpus": 1, **fields}
    return session(DEV, read_folder(root), "ada", {"idle": idle}, idle, **given).job


def test_a_pod_that_is_not_replaced(root: Path) -> None:
    """A failure and a disruption both end the Job, whose annotation names no script."""
    job = _job(root)
    assert job["spec"]["backoffLimit"] == 0
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert job["metadata"]["annotations"]["ebbtide.dev/command"] == "a terminal"
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_a_session_on_nodes_that_the_cloud_reclaims() -> None:
    """A warning names the pools, also those of a queue, and an on-demand pool instead; one on such a pool has
    none."""
    cpu = replace(DEV.pool("cpu-spot"), name="cpu", capacity="on-demand", interruptible=False)
    profile = replace(DEV, pools=(*DEV.pools, cpu))
    for pool, queue, namespace in (("t4-spot", "", ""), ("t4-spot", "t4", "vision"), ("", "vision/t4", "")):
        warning = reclaim_warning(profile, pool, queue, namespace)
        assert warning.startswith("The cloud may reclaim a node of t4-spot at any time.")
        assert "Use --pool cpu, or keep files with --volume." in warning
        assert "Use an on-demand pool, or" in reclaim_warning(DEV, pool, queue, namespace)
    assert reclaim_warning(profile, "cpu", "", "") == ""


def test_the_code_of_a_session(root: Path) -> None:
    """With a registry the code is in the image, and in a ConfigMap on request."""
    profile = replace(DEV, teams=(TeamProfile("vision", "images", registry="acme.example/ml"),))
    fields: Object = {"image": "python", "pool": "t4-spot", "gpus": 1, "namespace": "images"}
    dependents = [
        session(profile, read_folder(root), "ada", {}, "1h", code_in=where, **fields).dependents
        for where in (None, CodeIn.IMAGE, CodeIn.CONFIG_MAP)
    ]
    assert [[item["kind"] for item in items] for items in dependents] == [[], [], ["ConfigMap"]]


@pytest.mark.parametrize("idle", ["soon", "1s"])
def test_an_idle_time_that_is_none(root: Path, idle: str) -> None:
    """No duration, and one that ends before the first command, are errors with an example."""
    with pytest.raises(WorkloadError, match=f"idle is '?{idle}.*write"):
        _job(root, idle)


@pytest.fixture
def keepers(root: Path) -> Iterator[tuple[Keeper, Keeper]]:
    """The processes of two pods that end after five idle seconds, each with the variable of its other
    processes."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(_keeper(root)), stack.enter_context(_keeper(root))


@contextlib.contextmanager
def _keeper(root: Path) -> Generator[Keeper]:
    (container,) = _job(root, "5s")["spec"]["template"]["spec"]["containers"]
    words = [word.replace("$$", "$") for word in container["args"]]  # as Kubernetes does
    (mark,) = [f"{item['name']}={item['value']}" for item in container["env"]]
    name, _, value = mark.partition("=")
    with subprocess.Popen(words, env=os.environ | {name: value}) as started:
        try:
            yield started, mark
        finally:
            started.kill()


def test_a_session_ends_after_its_last_process(keepers: tuple[Keeper, Keeper]) -> None:
    """A session ends once the last process of its user has been gone for the idle time, not before; a shell
    on a terminal is none, and a command that runs in it is."""
    (kept, mark), (with_shell, other) = keepers
    words = [sys.executable, "-c", _TERMINAL, other]
    with (
        subprocess.Popen(["/usr/bin/env", mark, "sleep", "9"]) as work,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as terminal,
    ):
        assert terminal.stdin is not None
        terminal.stdin.write(b"sleep 9\n")
        terminal.stdin.flush()
        assert work.wait() == 0
        time.sleep(3)
        assert (kept.poll(), with_shell.poll()) == (None, None)
        assert (kept.wait(600), with_shell.wait(600)) == (0, 0)
        assert terminal.poll() is None
        terminal.kill()


def _traps(pid: int) -> bool:
    """Return whether a process has a handler for SIGTERM (proc_pid_status(5), SigCgt)."""
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))


def test_a_deleted_session_ends_at_once(keepers: tuple[Keeper, Keeper]) -> None:
    """SIGTERM ends the pod without its grace period."""
    (kept, _), _ = keepers
    while not _traps(kept.pid):
        time.sleep(0.01)
    kept.terminate()
    assert kept.wait(600) == 143  # it ends with 0 after its idle time
