"""Declarations that extend another stack's file.

`extends: Pulumi.dev.yaml` takes the declaration of that file; the fields beside `extends` change it as in
Kubernetes' strategic merge patch: mappings are merged, `null` removes a field of the base, pools, queues and
teams are merged by name, `{name: t4-spot, $patch: delete}` removes one, and any other list replaces the
base's. The policy and the prices of that file are extended in the same manner.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from ebbtide.declaration.project.yaml_file import Position, Positions, YamlFileError, positions_below, read
from ebbtide.errors import EXTENDS, ExtendsError
from ebbtide.values.paths import Key, path_text

DECLARATION: Final = "ebbtide:cluster"
"""Configuration key of a stack's cluster declaration."""

_BY_NAME: Final = frozenset({"pools", "queues", "teams"})
_ITEM: Final = re.compile(r"(pools|queues|teams)\[(\d+)\]")
_DELETE: Final = ("$patch", "delete")


class AddedItem(NamedTuple):
    """A pool, queue or team that its file adds to the base.

    Attributes:
        path: its path, such as `pools[4]`.
        kind: `pool`, `queue` or `team`.
        others: the names of the base's.
    """

    path: str
    kind: str
    name: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declaration with the positions of its parts.

    Attributes:
        value: the declaration, without `extends`.
        positions: positions by path in `value`; `()` is the declaration itself.
        bases: the files that it extends, the nearest first.
        changes: paths of its changes to the base, with names for indices: `pools[t4-spot].nodes.max`.
    """

    value: Any
    positions: Positions
    bases: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    def added(self, path: str) -> AddedItem | None:
        """Return the added item that a path is in; None if the base has it, or there is no base."""
        match = _ITEM.match(path)
        if match is None or not self.bases:
            return None
        key, index = match[1], int(match[2])
        items = cast("list[Any]", self.value[key])
        names = [str(cast("dict[str, Any]", item).get("name")) for item in items if isinstance(item, dict)]
        own = {name for name in names if f"{key}[{name}]" in self.changes}
        if index >= len(names) or names[index] not in own:
            return None
        others = tuple(name for name in names if name not in own)
        return AddedItem(match[0], key.removesuffix("s"), names[index], others)


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of a declaration: fields, items or a scalar, its position, and whether it changes the base."""

    scalar: Any = None
    fields: "dict[str, _Node] | None" = None
    items: "list[_Node] | None" = None
    position: Position | None = None
    is_change: bool = False


@dataclass(frozen=True, slots=True)
class _Merge:
    """A merge of a declaration into its base; `removed` has the removed paths."""

    removed: list[str] = field(default_factory=list[str])

    def fields(self, base: dict[str, _Node], own: dict[str, _Node], path: str) -> dict[str, _Node]:
        """Merge the fields of a mapping."""
        result = dict(base)
        for key, node in own.items():
            at = f"{path}.{key}" if path else key
            if _plain(node) is None and key in base:
                del result[key]
                self.removed.append(at)
            else:
                result[key] = self._node(base.get(key), node, at, by_name=not path and key in _BY_NAME)
        return result

    def _node(self, base: _Node | None, own: _Node, path: str, *, by_name: bool) -> _Node:
        if base is None:
            return replace(own, is_change=True)
        if base.fields is not None and own.fields is not None:
            return replace(base, fields=self.fields(base.fields, own.fields, path))
        if by_name and base.items is not None and own.items is not None:
            return replace(base, items=self._items(base.items, own.items, path))
        return replace(own, is_change=_plain(base) != _plain(own))

    def _items(self, base: list[_Node], own: list[_Node], path: str) -> list[_Node]:
        """Merge lists by the names of their items. Items without a name are kept and fail validation."""
        result = {_name(item) or index: item for index, item in enumerate(base)}
        for index, item in enumerate(own, len(base)):
            name = _name(item)
            at = f"{path}[{name}]"
            if name and _is_deletion(item):
                if result.pop(name, None) is None:
                    prefix = f"{item.position}: " if item.position else ""
                    raise ExtendsError(f"{prefix}{at} is removed, but does not exist in the base.")
                self.removed.append(at)
            elif name and name in result:
                result[name] = self._node(result[name], item, at, by_name=False)
            else:
                result[name or index] = replace(item, is_change=True)
        return list(result.values())


def extended(value: object, directory: Path, positions: Positions | None = None) -> Declaration:
    """Return a declaration merged with its bases.

    Args:
        value: the declaration as parsed from YAML or JSON.
        directory: the directory of `Pulumi.yaml`.
        positions: positions of its parts.

    Raises:
        ExtendsError: a base file cannot be used.
    """
    return _extended(Declaration(value, positions or {}), directory, ())


def _extended(own: Declaration, directory: Path, above: tuple[str, ...]) -> Declaration:
    change = _tree(own)
    if change.fields is None or EXTENDS not in change.fields:
        return own
    name = change.fields[EXTENDS].scalar
    position = own.positions.get((EXTENDS,))
    prefix = f"{position}: " if position else ""
    if not isinstance(name, str) or not name:
        raise ExtendsError(f"{prefix}extends is not a file. Write a stack's file, such as Pulumi.dev.yaml.")
    if name in above:
        chain = " extends ".join((*above, name))
        raise ExtendsError(f"{prefix}{chain}: a file cannot extend itself. Remove one of these extends.")
    base = _extended(_base(name, directory, prefix), directory, (*above, name))
    fields = {key: node for key, node in change.fields.items() if key != EXTENDS}
    return replace(_merged(base, replace(change, fields=fields)), bases=(name, *base.bases))


def base_files(file: Path, directory: Path) -> Iterator[Path]:
    """Yield the files that a stack's file extends, the nearest first, as far as they can be read.

    Args:
        directory: the directory of `Pulumi.yaml`.
    """
    found = [file.resolve()]
    while True:
        try:
            value = read(found[-1]).value
        except YamlFileError:
            return
        match value:
            case {"config": {"ebbtide:cluster": {"extends": str(name)}}} | {"extends": str(name)}:
                base = (directory / name).resolve()
            case _:
                return
        if base in found:
            return
        found.append(base)
        yield base


def inherited(key: str, own: Declaration | None, bases: Sequence[str], directory: Path) -> Declaration | None:
    """Return another setting of a stack's file, merged with that of the declaration's bases.

    Args:
        key: configuration key of the setting.
        own: the setting in the stack's own file; None without one.
        bases: the bases, the nearest first.
        directory: the directory of `Pulumi.yaml`.

    Returns:
        The setting; None if no file has it.
    """
    base = None
    for name in reversed(bases):
        file = directory / name
        match (document := read(file)).value:
            case {"config": {**settings}} if key in settings:
                positions = positions_below(_shown(file), document.positions, ("config", key))
                base = _merged(base, _tree(Declaration(settings[key], positions)))
            case _:
                pass
    if own is None:
        return base and replace(base, changes=())
    return _merged(base, _tree(own)) if bases else own


def _merged(base: Declaration | None, change: _Node) -> Declaration:
    """Merge a change into its base."""
    merge = _Merge()
    root = _tree(base) if base else None
    if root is not None and root.fields is not None and change.fields is not None:
        merged = replace(change, fields=merge.fields(root.fields, change.fields, ""))
    else:
        merged = replace(change, is_change=True)
    changes = (*_changes(merged, ""), *merge.removed)
    return Declaration(_plain(merged), dict(_positions(merged, ())), changes=changes)


def _base(name: str, directory: Path, where: str) -> Declaration:
    """Read the declaration of a stack's file, or of a file that has only a declaration's fields."""
    file = directory / name
    try:
        document = read(file)
    except YamlFileError as error:
        raise ExtendsError(f"{where}extends {name}, which is invalid. {error}") from error
    file = _shown(file)
    match document.value:
        case {"config": {"ebbtide:cluster": dict() as value}}:
            return Declaration(value, positions_below(file, document.positions, ("config", DECLARATION)))
        case dict() as value if "config" not in value:
            return Declaration(value, positions_below(file, document.positions, ()))
        case _:
            raise ExtendsError(
                f"{where}extends {name}, which declares no cluster. Write a stack's file, or one with the "
                "fields of a declaration."
            )


def _shown(file: Path) -> Path:
    """Return a path for messages."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def _tree(declaration: Declaration) -> _Node:
    def node(value: Any, path: tuple[Key, ...]) -> _Node:
        position = declaration.positions.get(path)
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, Any]", value)
            return _Node(
                fields={key: node(item, (*path, key)) for key, item in fields.items()}, position=position
            )
        if isinstance(value, list):
            items = enumerate(cast("list[Any]", value))
            return _Node(items=[node(item, (*path, index)) for index, item in items], position=position)
        return _Node(scalar=value, position=position)

    return node(declaration.value, ())


def _children(node: _Node) -> Iterator[tuple[Key, _Node]]:
    yield from (node.fields or {}).items()
    yield from enumerate(node.items or ())


def _plain(node: _Node) -> Any:
    if node.fields is not None:
        return {key: _plain(child) for key, child in node.fields.items()}
    if node.items is not None:
        return [_plain(child) for child in node.items]
    return node.scalar


def _positions(node: _Node, path: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], Position]]:
    if node.position is not None:
        yield path, node.position
    for key, child in _children(node):
        yield from _positions(child, (*path, key))


def _changes(node: _Node, path: str) -> Iterator[str]:
    if node.is_change:
        yield path
        return
    for key, child in _children(node):
        step = f"[{_name(child) or key}]" if isinstance(key, int) else path_text([key])
        yield from _changes(child, f"{path}.{step}" if path and not step.startswith("[") else f"{path}{step}")


def _name(item: _Node) -> str:
    name = (item.fields or {}).get("name", _Node()).scalar
    return name if isinstance(name, str) else ""


def _is_deletion(item: _Node) -> bool:
    key, value = _DELETE
    return (item.fields or {}).get(key, _Node()).scalar == value
