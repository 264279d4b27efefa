"""The Go toolchain: found, version-checked, and run with its output displayed and logged."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final

from ebbtide_rehearsal.tools.cache import pins
from ebbtide_rehearsal.tools.errors import ToolError
from ebbtide_rehearsal.tools.items import Item
from ebbtide_rehearsal.tools.steps import OnStep, Worked

_HAS: Final = re.compile(r"\bgo(\d+)\.(\d+)")
_NEEDS: Final = re.compile(r"^go (\d+)\.(\d+)", flags=re.MULTILINE)
_INSTALL: Final = "install it (https://go.dev/doc/install) and run this again"
_LAST_LINES: Final = 3
_DECIDED_HERE: Final = {
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly",
}
"""Fixed build settings. Module sources and their verification stay the user's settings."""
_DEFAULTS: Final = {"GOGC": "400"}
"""Default build settings, which the user's environment overrides. With fewer garbage collections of the
compiler, kwok and Kueue take 150 s instead of 166 s (2026-11).
"""
_CROSS: Final = frozenset({"GOOS", "GOARCH"})


@dataclass(frozen=True, slots=True)
class Go:
    """The `go` command.

    Attributes:
        path: the program.
        on_step: called with every line of progress output.
        name: the item that it builds.
        stopped: set by `stop`.
        processes: the running ones.
    """

    path: str
    on_step: OnStep
    name: str = ""
    stopped: Event = field(default_factory=Event)
    processes: set[subprocess.Popen[str]] = field(default_factory=set[subprocess.Popen[str]])

    def run(self, arguments: Sequence[str], *, directory: Path, log: Path, purpose: str) -> str:
        """Run a Go command and wait for it; Go and its compilers are terminated with this call.

        Args:
            arguments: the command's arguments.
            directory: the directory of go.mod.
            log: a file for Go's output.
            purpose: the beginning of an error message: `kwok 0.8.0 could not be built`.

        Returns:
            Its standard output.

        Raises:
            ToolError: Go failed; with the last lines of its output.
        """
        messages: list[str] = []
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as output,
            log.open("a", encoding="utf-8") as lines,
            subprocess.Popen(  # noqa: S603
                [self.path, *arguments],
                cwd=directory,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                process_group=0,
            ) as process,
        ):
            self.processes.add(process)
            try:
                if self.stopped.is_set():
                    _terminate(process)
                for line in process.stderr or ():
                    lines.write(line)
                    messages.append(line.strip())
                    self.on_step(Worked(self.name, line.strip()))
                status = process.wait()
            except BaseException:
                _terminate(process)
                raise
            finally:
                self.processes.discard(process)
            output.seek(0)
            result = output.read()
        if status:
            last = " / ".join([line for line in messages if line][-_LAST_LINES:]) or f"exit status {status}"
            raise ToolError(f"{purpose}; Go's last output: {last} (full log: {log}).")
        return result

    def stop(self) -> None:
        """Terminate the running commands, and refuse further ones; called from another thread."""
        self.stopped.set()
        for process in tuple(self.processes):
            _terminate(process)


def _terminate(process: subprocess.Popen[str]) -> None:
    """Terminate a command and its compilers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)


def find_go(items: Iterable[Item], on_step: OnStep) -> Go:
    """Return the Go on PATH.

    Args:
        items: all items to build, for the error message.
        on_step: called with progress output.

    Raises:
        ToolError: Go is missing, or too old for the go.mod of an item.
    """
    required = tuple(items)
    needed = max(_needed(item.group) for item in required)
    release = ".".join(map(str, needed))
    missing = ", ".join(f"{item.name} {item.version}" for item in required)
    path = shutil.which("go")
    if path is None:
        raise ToolError(
            f"Neither on PATH in an accepted version nor built yet: {missing}; building needs Go {release} "
            f"or later, which is not on PATH either: {_INSTALL}."
        )
    reported = subprocess.run(  # noqa: S603
        [path, "env", "GOVERSION"],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    match _HAS.search(reported.stdout):
        case None:
            raise ToolError(
                f"`{path} env GOVERSION` does not report Go's version; building {missing} needs Go {release} "
                f"or later: {_INSTALL}."
            )
        case version if (int(version[1]), int(version[2])) < needed:
            raise ToolError(
                f"Building {missing} needs Go {release} or later, and {path} is {reported.stdout.strip()}: "
                f"{_INSTALL}."
            )
        case _:
            return Go(path, on_step)


def _needed(group: str) -> tuple[int, int]:
    go_mod, _ = pins(group)
    match = _NEEDS.search(go_mod.read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f"{go_mod} has no go line.")
    return int(match[1]), int(match[2])


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in _CROSS}
    return {**_DEFAULTS, **inherited, **_DECIDED_HERE}
