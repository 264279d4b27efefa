"""Settings of the fake cloud, and its status reports, as files in its directory."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

_FILE = "cloud.json"
_PORTS = "ports.json"
_STORE = "cloud.sqlite"
_MEMORY = "memory"


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


def write_ports(directory: Path, ports: Mapping[str, int]) -> None:
    """Write the port of each package's provider, once the cloud is ready."""
    temporary = directory / f"{_PORTS}.new"
    temporary.write_text(json.dumps(ports), encoding="utf-8")
    temporary.rename(directory / _PORTS)


def read_ports(directory: Path) -> dict[str, int] | None:
    """Read the port of each package's provider; None until the cloud is ready."""
    try:
        return json.loads((directory / _PORTS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write_memory(directory: Path, used: int) -> None:
    """Write the peak memory of the cloud and its control planes, in bytes."""
    temporary = directory / f"{_MEMORY}.new"
    temporary.write_text(str(used), encoding="utf-8")
    temporary.rename(directory / _MEMORY)


def read_memory(directory: Path) -> int:
    """Read the reported memory; 0 before the first report."""
    try:
        return int((directory / _MEMORY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0
