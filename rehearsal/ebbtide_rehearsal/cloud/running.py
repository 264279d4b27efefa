"""The stand-in cloud as whoever rehearses sees it: a process that is started, watched and stopped."""

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ebbtide_rehearsal.cloud.settings import Settings, read_memory, read_ports, store_file
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.failures import RehearsalError

_PATIENCE: Final = 120.0  # seconds; a cluster that is there already is started before
_STEP: Final = 0.05
_ENDING: Final = 30.0
_SHOWN: Final = 10


class Cloud:
    """The stand-in cloud's process. It ends with this one: it reads from a pipe that then closes."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        """Start it.

        Args:
            directory: its own.
            settings: what it is told.

        Raises:
            RehearsalError: it does not start.
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
            self.ports = self._ready()
        except BaseException:
            self.stop()
            raise

    @property
    def providers(self) -> str:
        """Where the engine finds the providers, as `PULUMI_DEBUG_PROVIDERS` has it."""
        return ",".join(f"{package}:{port}" for package, port in self.ports.items())

    def memory(self) -> int:
        """The most memory that it and its control planes have had in use, bytes."""
        return read_memory(self._directory)

    def check(self) -> None:
        """Whether it still runs.

        Raises:
            RehearsalError: it has ended by itself.
        """
        if self._process.poll() is not None:
            words = self._log.read_text(errors="replace").splitlines()[-_SHOWN:]
            raise RehearsalError("The stand-in cloud has ended by itself. It said last:\n" + "\n".join(words))

    def stop(self) -> None:
        """End it, and all that it has started."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _ready(self) -> dict[str, int]:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            self.check()
            ports = read_ports(self._directory)
            if ports is not None:
                return ports
            time.sleep(_STEP)
        raise RehearsalError(f"The stand-in cloud was not ready within {_PATIENCE:.0f} seconds: {self._log}.")
