"""Source positions: file, line and column of parts of a declaration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from ebbtide.declaration.project.extends import DECLARATION, Declaration, ExtendsError, extended
from ebbtide.declaration.project.misplaced_keys import NAMESPACE, MisplacedKey, misplaced_keys
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
        settings: other keys of the namespace in the stack's file, such as `location`, with which a program
            completes the declaration: their values and positions.
        misplaced: unused keys of the stack's file that were probably meant for the declaration.
    """

    declaration: Declaration
    settings: Mapping[str, tuple[object, Position | None]] = field(
        default_factory=dict[str, tuple[object, Position | None]]
    )
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
                return self._setting(path, declared)
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

    def _setting(self, path: str, declared: object) -> Position | None:
        """Return the position of the setting that a program has used for a path; None if there is none."""
        value, position = self.settings.get(str([*path_keys(path), ""][-2]), (None, None))
        for key in path_keys(path):
            if not _has(declared, key):
                return None
            declared = _item(declared, key)
        return position if declared == value else None


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
        case (file, Document(value={"config": {"ebbtide:cluster": value, **others}}) as document, project):
            positions = positions_below(file, document.positions, ("config", DECLARATION))
            try:
                declaration = extended(value, project_directory(directory), positions)
            except ExtendsError:
                return None
            settings = {
                key.removeprefix(f"{NAMESPACE}:"): (
                    item,
                    positions_below(file, document.positions, ("config", key)).get(()),
                )
                for key, item in others.items()
            }
            misplaced = tuple(misplaced_keys(file, document, project))
            return Source(declaration=declaration, settings=settings, misplaced=misplaced)
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
