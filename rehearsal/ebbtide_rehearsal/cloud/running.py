"""Start, check and stop of the fake cloud's process."""

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ebbtide_rehearsal.cloud.settings import CloudSettings, read_memory, read_ports, store_file
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.failures import RehearsalError

_START_TIMEOUT: Final = 120.0  # seconds; includes the start of existing clusters
_STEP: Final = 0.05
_ENDING: Final = 30.0
_SHOWN: Final = 10


class RunningCloud:
    """Process of the fake cloud. It ends with this process, which closes its standard input."""

    def __init__(self, directory: Path, settings: CloudSettings) -> None:
        """Start the process.

        Args:
            directory: directory of the cloud.
            settings: its settings.

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
            self.ports = self._ready()
        except BaseException:
            self.stop()
            raise

    @property
    def providers(self) -> str:
        """Value of `PULUMI_DEBUG_PROVIDERS`: each package with its port."""
        return ",".join(f"{package}:{port}" for package, port in self.ports.items())

    def memory(self) -> int:
        """Return the peak memory of the cloud and its control planes, in bytes."""
        return read_memory(self._directory)

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _ready(self) -> dict[str, int]:
        end = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < end:
            self.check()
            ports = read_ports(self._directory)
            if ports is not None:
                return ports
            time.sleep(_STEP)
        raise RehearsalError(
            f"The fake cloud was not ready within {_START_TIMEOUT:.0f} seconds: {self._log}."
        )
