"""Source positions of a declaration: file, line and column of its parts, and misplaced keys of the file."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final, cast

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.shape.error_locations import aliases_of
from ebbtide.declaration.project.configuration import NAMESPACE, REPLACEMENTS, project_directory, stack_file
from ebbtide.declaration.project.extends import DECLARATION, Declaration, extended
from ebbtide.declaration.project.yaml_file import (
    Document,
    Position,
    YamlFileError,
    positions_below,
    read,
)
from ebbtide.errors import ExtendsError
from ebbtide.values.paths import Key, path_keys

_CUTOFF: Final = 0.7
_KEYS: Final = ("cluster", "policy", "prices")
"""Configuration keys in the namespace."""
_OF_PROGRAMS: Final = ("owner", "project", "location", "subscription", REPLACEMENTS)
"""Other keys in the namespace: those that the templates' programs read, and the one of `ebbtide up`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedKey:
    """An unused key, and the probable intended one.

    Attributes:
        field: intended field of the declaration; empty for the whole declaration, and for a field of a pool.
        file: the stack's file.
        line: line, from 1.
        column: column, from 1.
        problem: problem and its consequence.
        fix: suggested fix.
        is_certain: True if the key has no other meaning, so that the file is rejected.
    """

    field: str
    file: Path
    line: int
    column: int
    problem: str
    fix: str
    is_certain: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.problem} {self.fix}"


def misplaced_keys(file: Path, document: Document, project: str) -> Iterator[MisplacedKey]:
    """Find the misplaced keys of a stack's file.

    Args:
        document: its content.
        project: the project's name, the default namespace of keys.
    """
    whole = document.value if isinstance(document.value, dict) else {}
    config = whole.get("config")
    within = config if isinstance(config, dict) else {}
    declared = within.get(f"{NAMESPACE}:cluster", within.get("cluster") if project == NAMESPACE else None)

    def at(path: tuple[Key, ...], field: str, problem: str, fix: str, *, is_certain: bool) -> MisplacedKey:
        at = dict(zip(("line", "column"), document.positions[path], strict=True))
        return MisplacedKey(field=field, file=file, problem=problem, fix=fix, is_certain=is_certain, **at)

    for key in whole:
        if misplacement := _at_the_top(key, has_config="config" in whole, is_declared=declared is not None):
            yield at((key,), key if key in aliases_of(Cluster) else "", *misplacement, is_certain=True)
    for key, value in within.items():
        namespace, _, name = key.rpartition(":")
        if (namespace or project) not in (NAMESPACE, project):
            continue
        if declared is None and (fix := _meant_cluster(namespace or project, name)):
            certain = (namespace or project) == NAMESPACE
            yield at(("config", key), "", f"Unused configuration key `{key}`.", fix, is_certain=certain)
        elif namespace == NAMESPACE and name not in (*_KEYS, *_OF_PROGRAMS):
            fix = _instead(name, {other.rpartition(":")[2] for other in within})
            yield at(("config", key), "", f"Unused configuration key `{key}`.", fix, is_certain=True)
        elif isinstance(value, dict | list) and isinstance(declared, Mapping) and name not in declared:
            field, fix = _indented(name)
            if fix:
                problem = f"`{key}` is beside `{NAMESPACE}:cluster`, where it has no effect."
                yield at(("config", key), field, problem, fix, is_certain=False)


def _at_the_top(key: str, *, has_config: bool, is_declared: bool) -> tuple[str, str] | None:
    """Return the problem of a top-level key and its fix; None for a valid key."""
    problem = f"`{key}` is not indented, and Pulumi ignores it there."
    if key.startswith(f"{NAMESPACE}:"):
        return problem, "Indent it under `config:`."
    if key in aliases_of(Cluster):
        return problem, f"Indent it under `{NAMESPACE}:cluster:`."
    if not has_config and not is_declared and get_close_matches(key, ["config"], cutoff=_CUTOFF):
        return f"A stack's file has no key `{key}`, so it is ignored.", "Write `config:`."
    return None


def _meant_cluster(namespace: str, name: str) -> str:
    """Return the fix for a key that was probably intended as the declaration; empty for other keys."""
    if name in aliases_of(Cluster):
        return f"Write `{NAMESPACE}:cluster:` above it, and indent it under that."
    near = get_close_matches(name.lower(), ["cluster"], cutoff=_CUTOFF)
    return f"Write `{NAMESPACE}:cluster:`." if near and (namespace, name) != (NAMESPACE, "cluster") else ""


def _instead(name: str, written: Collection[str]) -> str:
    """Return the fix for an unknown key of the namespace, which is beside other keys."""
    near = next(iter(get_close_matches(name, (*_KEYS, *_OF_PROGRAMS), 1, _CUTOFF)), "")
    if near in written:
        return f"Remove it: `{NAMESPACE}:{near}` is there."
    return f"Write `{NAMESPACE}:{near}:`." if near else _indented(name)[1] or "Remove it."


def _indented(name: str) -> tuple[str, str]:
    """Return the field that a key beside the declaration was probably intended as, and its fix; empty for
    none.
    """
    if name in aliases_of(Cluster):
        return name, f"Indent it under `{NAMESPACE}:cluster:`, like `owner`."
    if name in aliases_of(Pool):
        return "", "Indent it under the pool that it belongs to."
    return "", ""


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
            # pyrefly: ignore[bad-argument-type] # loses the type of `others`
            return Source(declaration=declaration, settings=settings, misplaced=misplaced)
        case _:
            return None


def find_misplaced(directory: Path, stack: str) -> tuple[MisplacedKey, ...]:
    """Find the unused keys of a stack's file; arguments as for `find_source`."""
    found = _stack_file(directory, stack)
    return tuple(misplaced_keys(*found)) if found else ()


def _stack_file(directory: Path, stack: str) -> tuple[Path, Document, str] | None:
    """Return a stack's file, its content and the project's name; None if any is unreadable."""
    root = project_directory(directory)
    try:
        project = read(root / "Pulumi.yaml").value
        settings = project if isinstance(project, dict) else {}
        file = stack_file(root, settings, stack)
        document = read(file)
    except YamlFileError:
        return None
    shown = file.relative_to(directory) if file.is_relative_to(directory) else file
    return shown, document, str(settings.get("name"))
