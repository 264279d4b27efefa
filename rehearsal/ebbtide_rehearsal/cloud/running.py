"""The fake cloud's process: settings and status reports as files in its directory, start, check and stop."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.cloud.store import Store

_FILE = "cloud.json"
_STORE = "cloud.sqlite"
PROVIDERS: Final = "providers.json"
"""File with the addresses of the providers, which is written once the cloud is ready."""
MEMORY: Final = "memory"
"""File with the peak memory of the cloud and its control planes, in bytes."""
_START_TIMEOUT: Final = 300.0  # seconds; includes the start of existing clusters
_STEP: Final = 0.05
_ENDING: Final = 30.0
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """Settings of the fake cloud.

    Attributes:
        speed: simulated seconds per second.
        declaration: the stack's declaration, whose existing resources are created; may be empty.
        tools: paths of programs and data, by name.
    """

    speed: float = 1.0
    declaration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Mapping[str, str] = field(default_factory=dict[str, str])

    def path(self, name: str) -> Path:
        """Return the path of a program, or of a directory of data.

        Raises:
            KeyError: it is not among the tools.
        """
        return Path(self.tools[name])

    def write(self, directory: Path) -> None:
        """Write the settings to a directory."""
        (directory / _FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Read the settings from a directory."""
        return cls(**json.loads((directory / _FILE).read_text(encoding="utf-8")))


def store_file(directory: Path) -> Path:
    """Return the path of the store's file."""
    return directory / _STORE


def write(directory: Path, name: str, reported: object) -> None:
    """Write one of the process's files, which its parent reads at any time."""
    temporary = directory / f"{name}.new"
    temporary.write_text(json.dumps(reported), encoding="utf-8")
    temporary.rename(directory / name)


def _read(directory: Path, name: str) -> Any:
    """Read one of the process's files; None before it is written."""
    file = directory / name
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


class RunningCloud:
    """Process of the fake cloud. It ends with this process, which closes its standard input.

    Attributes:
        providers: value of `PULUMI_DEBUG_PROVIDERS`.
    """

    def __init__(self, directory: Path, settings: CloudSettings) -> None:
        """Start the process.

        Raises:
            RehearsalError: the process does not start.
        """
        self._directory = directory
        settings.write(directory)
        self.store = Store(store_file(directory), speed=settings.speed)
        self._log = directory / "cloud.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this very Python and package
                [sys.executable, "-m", "ebbtide_rehearsal.cloud", "--directory", str(directory)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self.providers = self._ready()
        except BaseException:
            self.stop()
            raise

    def memory(self) -> int:
        """Return the peak memory of the cloud and its control planes, in bytes."""
        return _read(self._directory, MEMORY) or 0

    def check(self) -> None:
        """Check that the process runs.

        Raises:
            RehearsalError: the process has ended.
        """
        if self._process.poll() is not None:
            words = self._log.read_text(errors="replace").splitlines()[-_SHOWN:]
            raise RehearsalError("The fake cloud has ended by itself. Its last output:\n" + "\n".join(words))

    def stop(self) -> None:
        """Stop the process and everything that it has started."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _ready(self) -> str:
        end = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < end:
            self.check()
            if providers := _read(self._directory, PROVIDERS):
                return providers
            time.sleep(_STEP)
        raise RehearsalError(
            f"The fake cloud was not ready within {_START_TIMEOUT:.0f} seconds: {self._log}."
        )
