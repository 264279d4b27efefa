"""Locks of a stack in a self-managed backend (a directory or a bucket), which name their process.

A killed engine leaves its lock. If the process ran on this machine as this user and no longer exists, the
lock is removed; any other lock is respected (pulumi 3.259, pkg/backend/diy/lock.go).
"""

import getpass
import os
import platform
import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from ebbtide.operations.errors import OperationError

_LOCK: Final = re.compile(r"created by (?P<user>[^\s@]+)@(?P<host>\S+) \(pid (?P<pid>\d+)\)")
_STEP: Final = 1.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of a stack.

    Attributes:
        user: user of its process.
        host: machine of its process.
        pid: id of its process.
    """

    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.user} on {self.host} (process {self.pid})"

    @property
    def is_local(self) -> bool:
        """True if its process is, or was, of this user on this machine."""
        return self.host == socket.gethostname() and self.user == getpass.getuser()

    @property
    def is_held(self) -> bool:
        """True if its process is still running an engine. On Windows, where signal 0 is Ctrl-C, any lock
        counts as held (docs.python.org, os.kill, 2026)."""
        if platform.system() == "Windows":
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        program = Path(f"/proc/{self.pid}/comm")
        state = Path(f"/proc/{self.pid}/stat")
        try:
            # A zombie process still has its id, and the id may have been reused by another process.
            dead = state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
            return not dead and "pulumi" in program.read_text(encoding="utf-8")
        except OSError:
            return True


class LockedError(OperationError):
    """Another update of the stack is in progress.

    Attributes:
        locks: the stack's locks; empty if the backend does not describe them.
    """

    def __init__(self, locks: Sequence[Lock], message: str) -> None:
        super().__init__(message)
        self.locks = tuple(locks)


def locks_of(error: str) -> list[Lock]:
    """Parse the engine's message about a locked stack."""
    return [Lock(match["user"], match["host"], int(match["pid"])) for match in _LOCK.finditer(error)]


def unlocking(run: Callable[[], _T], unlock: Callable[[], object], log: Callable[[str], object]) -> _T:
    """Run the engine, once other engine runs of this user on this machine have ended.

    Args:
        run: runs the engine.
        unlock: removes the stack's locks.
        log: called with a message about each lock that it waits for or removes.

    Raises:
        LockedError: a lock belongs to another user or machine.
    """
    announced: tuple[Lock, ...] = ()
    while True:
        try:
            return run()
        except LockedError as error:
            if not error.locks or not all(lock.is_local for lock in error.locks):
                raise
            held = tuple(lock for lock in error.locks if lock.is_held)
            if not held:
                pids = ", ".join(str(lock.pid) for lock in error.locks)
                log(f"The engine that locked the stack (process {pids}) has ended; its lock is removed.")
                unlock()
            elif held != announced:
                log(f"Waiting for another update of the stack, by {held[0]}.")
                announced = held
            if held:
                time.sleep(_STEP)
