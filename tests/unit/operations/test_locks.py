"""Locks of dead and living engines."""

import getpass
import os
import platform
import socket
import subprocess
import sys

import pytest

from ebbtide.operations.failures import Lock, LockedError, locks_of, unlocking

_MESSAGE = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or "
    "delete the lock file with `pulumi cancel`.\n"
    "  file:///state/.pulumi/locks/organization/p/dev/1.json: created by {user}@{host} (pid {pid}) at "
    "2026-11-22T12:00:00Z"
)


def _locks(pid: int, host: str = "", user: str = "") -> list[Lock]:
    host, user = host or socket.gethostname(), user or getpass.getuser()
    return locks_of(_MESSAGE.format(user=user, host=host, pid=pid))


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def _tried(locks: list[Lock]) -> tuple[list[str], list[str]]:
    """Run an engine that these locks stop until they are removed."""
    removed: list[str] = []
    lines: list[str] = []

    def run() -> None:
        if not removed:
            raise LockedError(locks, "Another update is in progress.")

    unlocking(run, lambda: removed.append("all"), lines.append)
    return removed, lines


def test_the_lock_of_a_dead_engine_is_removed(dead: int) -> None:
    """The lock of this user's ended process on this machine is removed."""
    removed, lines = _tried(_locks(dead))
    assert removed == ["all"]
    assert lines == [f"The engine that locked the stack (process {dead}) has ended; its lock is removed."]


def test_the_number_of_another_program_is_no_engine() -> None:
    """Python is not `pulumi`."""
    assert _tried(_locks(os.getpid()))[0] == ["all"]


@pytest.mark.parametrize("other", [{"host": "another"}, {"user": "ada"}])
def test_the_lock_of_another_machine_or_user_stays(other: dict[str, str], dead: int) -> None:
    """Nothing here shows that its engine has ended."""
    with pytest.raises(LockedError):
        _tried(_locks(dead, **other))


def test_on_windows_a_lock_stays(dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No signal is sent: signal 0 is Ctrl-C there, and would stop the engine."""
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(os, "kill", None)
    (lock,) = _locks(dead)
    assert lock.is_held


def test_a_service_names_no_process() -> None:
    """A lock of a service backend, which names no process, is kept."""
    with pytest.raises(LockedError):
        _tried(locks_of("[409] Conflict: Another update is currently in progress."))


def test_a_living_engine_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A running engine is named once, and the command continues when it releases its lock."""
    monkeypatch.setattr(Lock, "is_held", True)
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    lines: list[str] = []

    def run() -> str:
        if len(waits) < 3:
            raise LockedError(_locks(7), "Another update is in progress.")
        return "done"

    assert unlocking(run, pytest.fail, lines.append) == "done"
    (lock,) = _locks(7)
    assert lines == [f"Waiting for another update of the stack, by {lock.user} on {lock.host} (process 7)."]
