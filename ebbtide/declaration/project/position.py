"""Positions in files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ebbtide.values.paths import Key


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a file; line and column count from 1, and are 0 if unknown."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


Positions: TypeAlias = Mapping[tuple[Key, ...], Position]
"""Positions of the parts of a value, by path; `()` is the value itself."""


def positions_below(
    file: Path, positions: Mapping[tuple[Key, ...], tuple[int, int]], prefix: tuple[Key, ...]
) -> dict[tuple[Key, ...], Position]:
    """Return the positions of a value in a file, by path in the value.

    Args:
        file: the file.
        positions: line and column by path in the file.
        prefix: the value's path in the file.
    """
    depth = len(prefix)
    return {
        path[depth:]: Position(str(file), *position)
        for path, position in positions.items()
        if path[:depth] == prefix
    }
