"""Child processes that always end with this process."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ebbtide.errors import EbbtideError

_KEEPER = """
trap '' TERM INT HUP
while read -r line; do :; done
kill -TERM 0
sleep 1
rm -rf -- "$1"
kill -KILL 0
"""
# Zero is the process group. Waits for the end of a pipe that only the parent holds open, which is reached
# even if the parent is killed, and then kills its process group with all children. A parent-death signal
# (prctl) would be sent when the thread that started the child ends, and only on Linux.
_TIMEOUT = 2.0
_TAIL = 12


class ControlPlaneError(EbbtideError):
    """A program of the control plane failed to start, or ended. The message names it and has the last lines
    of its log.
    """


class AddressTakenError(ControlPlaneError):
    """Another process took a port between its selection and its use; a retry with another port succeeds."""


@dataclass(frozen=True, slots=True)
class Process:
    """A started program.

    Attributes:
        log: the file with its output.
    """

    name: str
    log: Path
    child: "subprocess.Popen[bytes]"

    @property
    def running(self) -> bool:
        """True until it ends."""
        return self.child.poll() is None

    def last_words(self) -> str:
        """Return the last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.is_file() else []
        return "\n".join(lines[-_TAIL:])

    def ended(self) -> ControlPlaneError:
        """Build the error for an unexpected end."""
        output = self.last_words()
        kind = AddressTakenError if "address already in use" in output else ControlPlaneError
        return kind(f"{self.name} ended with status {self.child.returncode}. Its last output:\n{output}")


class Processes:
    """Processes in a process group, with a watchdog that kills them when this process ends.

    A forked child inherits the pipe and delays the watchdog: start children with `subprocess`, which closes
    unneeded descriptors.

    Attributes:
        sockets: a directory with a path short enough for Unix sockets (104 bytes on macOS); removed with the
            processes.
    """

    def __init__(self) -> None:
        self.sockets = Path(tempfile.mkdtemp(prefix="ebbtide-"))
        self._started: list[Process] = []
        self._lock = threading.Lock()
        self._keeper = subprocess.Popen(  # noqa: S603 # our own words
            ["/bin/sh", "-c", _KEEPER, "keeper", str(self.sockets)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program.

        Args:
            command: the program and its arguments.
            log: the file to which its output is appended.
            directory: its working and home directory.
            environment: its environment besides `PATH` and `HOME`; this process's variables, such as proxies,
                are not inherited.

        Raises:
            ControlPlaneError: it cannot be executed.
        """
        variables = {"PATH": os.defpath, "HOME": str(directory), **(environment or {})}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            try:
                child = subprocess.Popen(  # noqa: S603 # the tools' own
                    [str(word) for word in command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=directory,
                    env=variables,
                    process_group=self._keeper.pid,
                )
            except OSError as error:
                raise ControlPlaneError(f"{name} cannot be run: {command[0]}: {error.strerror}.") from error
        process = Process(name, log, child)
        with self._lock:
            self._started.append(process)
        return process

    def stop(self, process: Process) -> None:
        """Stop a process: by signal, then by kill after a timeout."""
        process.child.terminate()
        _wait([process], _TIMEOUT)
        with self._lock, contextlib.suppress(ValueError):
            self._started.remove(process)

    def close(self) -> None:
        """Stop all processes in reverse order, and the watchdog."""
        with self._lock:
            started, self._started = self._started, []
        for process in reversed(started):
            process.child.terminate()
        _wait(started, _TIMEOUT)
        with self._keeper:  # also closes its pipe
            self._keeper.poll()
            if self._keeper.returncode is None:
                os.killpg(self._keeper.pid, signal.SIGKILL)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def memory(self) -> int:
        """Return the resident memory of all processes, in bytes."""
        with self._lock:
            ids = [str(process.child.pid) for process in self._started if process.running]
        if not ids:
            return 0
        command = ["ps", "-o", "rss=", "-p", ",".join(ids)]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 # numbers
        return sum(int(line) for line in listed.stdout.split()) * 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _wait(processes: Sequence[Process], timeout: float) -> None:
    """Wait for terminated processes, with a common timeout in seconds."""
    deadline = time.monotonic() + timeout
    for process in processes:
        try:
            process.child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.child.kill()
            process.child.wait()
