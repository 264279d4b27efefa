"""Source positions: file, line and column of parts of a declaration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ebbtide.declaration.project.extends import DECLARATION, Declaration, ExtendsError, extended
from ebbtide.declaration.project.misplaced_keys import MisplacedKey, misplaced_keys
from ebbtide.declaration.project.position import Position, positions_below
from ebbtide.declaration.project.yaml_file import Document, YamlFileError, read
from ebbtide.values.paths import Key, path_keys
from ebbtide.values.user_files import parse_json

__all__ = [
    "DECLARATION",
    "Position",
    "Source",
    "find_misplaced",
    "find_source",
    "parsed",
    "project_directory",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Positions of a declaration in YAML files.

    Attributes:
        declaration: the declaration, with its bases.
        misplaced: unused keys of the stack's file that were probably meant for the declaration.
    """

    declaration: Declaration
    misplaced: tuple[MisplacedKey, ...] = ()

    def position(self, path: str, declared: object) -> Position | None:
        """Return the position of a path; for a missing key, the position of its parent.

        Args:
            path: path in the declaration, such as `pools[2].machine`.
            declared: the validated declaration, which may differ from the files.

        Returns:
            The position; None if the value is not from these files.
        """
        keys: tuple[Key, ...] = ()
        written, read_as = cast("object", self.declaration.value), declared
        for key in path_keys(path):
            if _has(written, key) != _has(read_as, key):
                return None
            if not _has(written, key):
                break
            written, read_as = _item(written, key), _item(read_as, key)
            keys = (*keys, key)
        if keys and written != read_as:
            return None
        positions = self.declaration.positions
        while keys and keys not in positions:  # an alias has only its anchor's positions
            keys = keys[:-1]
        return positions.get(keys)


def _has(value: object, key: Key) -> bool:
    if isinstance(value, Mapping):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(cast("list[object]", value))


def _item(value: object, key: Key) -> object:
    return cast("Mapping[Key, object]", value)[key] if isinstance(value, Mapping | Sequence) else None


def parsed(text: str) -> object:
    """Parse a declaration's configuration value: JSON, or else plain text."""
    try:
        return parse_json(text)
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
            positions = positions_below(file, document.positions, ("config", DECLARATION))
            try:
                declaration = extended(value, project_directory(directory), positions)
            except ExtendsError:
                return None
            return Source(declaration=declaration, misplaced=tuple(misplaced_keys(file, document, project)))
        case _:
            return None


def project_directory(directory: Path) -> Path:
    """Return the directory of `Pulumi.yaml`, in or above a directory; the directory itself without one."""
    above = (directory, *directory.parents)
    return next((parent for parent in above if (parent / "Pulumi.yaml").is_file()), directory)


def find_misplaced(directory: Path, stack: str) -> tuple[MisplacedKey, ...]:
    """Find the unused keys of a stack's file; arguments as for `find_source`."""
    stack_file = _stack_file(directory, stack)
    return tuple(misplaced_keys(*stack_file)) if stack_file else ()


def _stack_file(directory: Path, stack: str) -> tuple[Path, Document, str] | None:
    """Return a stack's file, its content and the project's name; None if any is unreadable."""
    root = project_directory(directory)
    try:
        project = read(root / "Pulumi.yaml").value
        settings = project if isinstance(project, dict) else {}
        file = root / str(settings.get("stackConfigDir") or "") / f"Pulumi.{stack}.yaml"
        document = read(file)
    except YamlFileError:
        return None
    shown = file.relative_to(directory) if file.is_relative_to(directory) else file
    return shown, document, str(settings.get("name"))
