"""What the stand-in cloud is told as it starts, and what it says of itself: files in its directory."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

_TOLD = "cloud.json"
_PORTS = "ports.json"
_STORE = "cloud.sqlite"
_MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the stand-in cloud is told.

    Attributes:
        speed: simulated seconds in a second.
        declaration: the stack's: what it says is there already is there. An empty one says nothing.
        tools: where the programs and data are that it runs with, by name.
    """

    speed: float = 1.0
    declaration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Mapping[str, str] = field(default_factory=dict[str, str])

    def path(self, name: str) -> Path:
        """A program's file, or a directory of data.

        Raises:
            KeyError: it is not among the tools.
        """
        return Path(self.tools[name])

    def write(self, directory: Path) -> None:
        """Leave it in the cloud's directory."""
        (directory / _TOLD).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """What was left there."""
        return cls(**json.loads((directory / _TOLD).read_text(encoding="utf-8")))


def store_file(directory: Path) -> Path:
    """The store's file."""
    return directory / _STORE


def write_ports(directory: Path, ports: Mapping[str, int]) -> None:
    """Say on which port the provider of each package listens: the cloud is ready."""
    made = directory / f"{_PORTS}.new"
    made.write_text(json.dumps(ports), encoding="utf-8")
    made.rename(directory / _PORTS)


def read_ports(directory: Path) -> dict[str, int] | None:
    """On which port the provider of each package listens; None as long as the cloud is not ready."""
    try:
        return json.loads((directory / _PORTS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write_memory(directory: Path, used: int) -> None:
    """Say how much memory the cloud and its control planes have had in use at most, bytes."""
    made = directory / f"{_MEMORY}.new"
    made.write_text(str(used), encoding="utf-8")
    made.rename(directory / _MEMORY)


def read_memory(directory: Path) -> int:
    """What was said; 0 as long as nothing was."""
    try:
        return int((directory / _MEMORY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0
