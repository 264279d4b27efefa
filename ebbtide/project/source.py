"""Source positions: file, line and column of a part of a declaration."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from ebbtide.model.paths import Key, path_keys
from ebbtide.project.misplaced import NAMESPACE, MisplacedKey, misplaced_keys
from ebbtide.project.yaml_file import Document, YamlFileError, read

DECLARATION: Final = f"{NAMESPACE}:cluster"
"""The configuration key of a stack's cluster declaration."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a file; line and column count from 1, and are 0 if unknown."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A declaration's position in a YAML file.

    Attributes:
        file: the file.
        prefix: the key path of the declaration.
        value: the declaration, as passed to the program.
        positions: line and column of every key and list item of the file, by path.
        misplaced: unused keys of the file that were probably meant for the declaration.
    """

    file: Path
    prefix: tuple[Key, ...]
    value: object
    positions: Mapping[tuple[Key, ...], tuple[int, int]]
    misplaced: tuple[MisplacedKey, ...] = ()

    def position(self, path: str, declared: object) -> Position | None:
        """Return the position of a path; for a missing key, the position of its parent.

        Args:
            path: the path in the declaration, as `pools[2].machine`.
            declared: the declaration that was validated, which may differ from the file.

        Returns:
            The position; None if the value is not from this file.
        """
        keys = self.prefix
        written, read_as = self.value, declared
        for key in path_keys(path):
            if _has(written, key) != _has(read_as, key):
                return None
            if not _has(written, key):
                break
            written, read_as = _item(written, key), _item(read_as, key)
            keys = (*keys, key)
        if keys != self.prefix and written != read_as:
            return None
        while keys and keys not in self.positions:  # an alias has only its anchor's positions
            keys = keys[:-1]
        return Position(str(self.file), *self.positions[keys]) if keys else None


def _has(value: object, key: Key) -> bool:
    if isinstance(value, Mapping):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(cast("list[object]", value))


def _item(value: object, key: Key) -> object:
    return cast("Mapping[Key, object]", value)[key] if isinstance(value, Mapping | Sequence) else None


def parsed(text: str) -> object:
    """Parse a declaration's configuration value: JSON, or else plain text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def find_source(directory: Path, stack: str) -> Source | None:
    """Find a stack's declaration in the project's files, for error positions only.

    Args:
        directory: the project's directory, or one below it.
        stack: the stack's name.

    Returns:
        The source; None if no readable file of the stack declares a cluster.
    """
    match _stack_file(directory, stack):
        case (file, Document(value={"config": {"ebbtide:cluster": value}}) as document, project):
            return Source(
                file=file,
                prefix=("config", DECLARATION),
                value=value,
                positions=document.positions,
                misplaced=tuple(misplaced_keys(file, document, project)),
            )
        case _:
            return None


def find_misplaced(directory: Path, stack: str) -> tuple[MisplacedKey, ...]:
    """Find the unused keys of a stack's file; arguments as for `find_source`."""
    found = _stack_file(directory, stack)
    return tuple(misplaced_keys(*found)) if found else ()


def _stack_file(directory: Path, stack: str) -> tuple[Path, Document, str] | None:
    """Return a stack's file, its content and the project's name; None if any is unreadable."""
    above = (directory, *directory.parents)
    home = next((parent for parent in above if (parent / "Pulumi.yaml").is_file()), None)
    if home is None:
        return None
    try:
        project = read(home / "Pulumi.yaml").value
        settings = project if isinstance(project, dict) else {}
        file = home / str(settings.get("stackConfigDir") or "") / f"Pulumi.{stack}.yaml"
        document = read(file)
    except YamlFileError:
        return None
    shown = file.relative_to(directory) if file.is_relative_to(directory) else file
    return shown, document, str(settings.get("name"))
