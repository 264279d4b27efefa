"""Differences between a resource in the state and as read from its cloud, who makes each of them, and how to
set them back.

The rows of `makers.csv`, the values that a cloud fills in, and the field managers of Kubernetes objects name
autoscalers, clouds and controllers; every other difference of a property that a program can set is a
person's.

A property of a Kubernetes object is set back by a command: the declared value conflicts with no field
manager (Kubernetes docs, server-side apply, conflicts). One of a node pool or a cluster is declared; the
update after the refresh sets it then. What cannot be declared is set back in the cloud.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from ebbtide.analysis.changes import azure, google, kubernetes
from ebbtide.analysis.changes.property_path import differences, merged, plain_path
from ebbtide.analysis.recording.values import SECRET_TEXT, Plain
from ebbtide.declaration.model.rules.overridable import CLUSTERS, POOLS
from ebbtide.declaration.providers import constraints
from ebbtide.declaration.providers.constraints import (
    ELSEWHERE,
    PATCH_FORCE,
    MakerRow,
    constraints_of,
    makers_of,
)
from ebbtide.declaration.providers.schema import alternatives, arguments, item_of, properties_of, word
from ebbtide.values.paths import Key, is_within, path_keys, path_text, value_at

Maker: TypeAlias = constraints.Maker | Literal["person"]

_OWN: Final = "pulumi-kubernetes"
"""Prefix of the field managers of the Kubernetes provider (pulumi-kubernetes 4.25, `fieldManagerName`)."""
_TAKEN_OVER: Final = "kubectl"
"""Prefix of the field managers whose fields the provider takes over before it updates an object, but for
those of a subresource, as of `kubectl scale` (pulumi-kubernetes 4.25, pkg/await/await.go,
`fixCSAFieldManagers`)."""
_BOOKKEEPING: Final = frozenset(
    ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
)
"""Metadata that every write changes (Kubernetes API conventions, metadata, 2026)."""
_EMPTY: Final[Sequence[Plain]] = (None, [], {})
_IDENTITIES: Final = ("name", "key", "rangeName", "type")
"""Properties that identify an item of a list, the first that all items have and in which they differ."""

_TOOLS: Final = {"gcp": "`gcloud`", "azure-native": "`az`"}


@dataclass(frozen=True, slots=True)
class ReadResource:
    """A resource of the state, and as read.

    Attributes:
        id: id in the cloud.
        inputs: inputs in the state.
        outputs: outputs in the state.
        read_inputs: inputs as read; None if the resource does not exist.
        read_outputs: outputs as read; None if it does not exist.
        has_failed: true if the last update of it failed. Of a Kubernetes object, the state then has the
            inputs before it, and outputs that were read after it (tried with pulumi 3.259, 2026-11).
    """

    urn: str
    type: str
    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    read_inputs: Mapping[str, Any] | None
    read_outputs: Mapping[str, Any] | None
    has_failed: bool = False

    @property
    def is_deleted(self) -> bool:
        """True if the resource does not exist."""
        return self.read_outputs is None


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that is not as in the state.

    Attributes:
        path: property path.
        old: value in the state; None if absent.
        new: value as read; None if absent.
        maker: who makes such a change.
        source: why: the row of a table, or the field manager.
        is_conflict: true if an update that sets it back fails: another field manager owns it.
    """

    path: str
    old: Plain
    new: Plain
    maker: Maker
    source: str
    is_conflict: bool = False


def differences_of(resource: ReadResource) -> tuple[Difference, ...]:
    """Return the differences of a resource; none if it was deleted."""
    if resource.read_outputs is None:
        return ()
    found = tuple(_differences(resource, resource.outputs, resource.read_outputs))
    if not resource.has_failed:
        return found
    paths = {item.path for item in found}
    declared = _differences(resource, merged(resource.outputs, resource.inputs), resource.read_outputs)
    return (*found, *(item for item in declared if item.is_conflict and item.path not in paths))


def _differences(
    resource: ReadResource, outputs: Mapping[str, Any], read: Mapping[str, Any]
) -> Iterator[Difference]:
    old = _properties(resource, outputs)
    new = _aligned(old, _properties(resource, read))
    return _Compared(resource, old, new, _aligned(old, dict(resource.inputs))).differences()


def _properties(resource: ReadResource, outputs: Mapping[str, Any]) -> dict[str, Plain]:
    """Return what is compared of a resource: without other resources in its lists."""
    result = {key: value for key, value in outputs.items() if not key.startswith("__")}
    for row in makers_of(resource.type):
        if row.maker == ELSEWHERE:
            own = {item.get("name") for item in _items(resource.inputs.get(row.path))}
            result[row.path] = [item for item in _items(result.get(row.path)) if item.get("name") in own]
    return result


def listed_resources(resource: ReadResource) -> Iterator[tuple[str, str]]:
    """Yield name and id of the other resources in a resource's lists, as read."""
    for row in makers_of(resource.type):
        if row.maker == ELSEWHERE:
            own = {item.get("name") for item in _items(resource.inputs.get(row.path))}
            for item in _items((resource.read_outputs or {}).get(row.path)):
                name = str(item.get("name"))
                if name not in own:
                    yield name, f"{resource.id}/{row.condition}/{name}"


def _items(value: Any) -> list[Mapping[str, Any]]:
    return (
        [item for item in cast("list[Any]", value) if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def _aligned(old: Any, new: Any) -> Any:
    """Return a value with the items of its lists at the positions that they have in another: lists of rules,
    taints and names have no order of their own. An item that is gone is None."""
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        return {key: _aligned(before.get(key), item) for key, item in after.items()}
    if not isinstance(old, list) or not isinstance(new, list):
        return new
    items, rest = cast("list[Any]", old), list(cast("list[Any]", new))
    key = _identity([*items, *rest])
    result = [_taken(rest, lambda other, item=item: other == item) for item in items]
    for index, item in enumerate(items):
        if result[index] is None and key:
            match = _taken(rest, lambda other, name=item[key]: other[key] == name)
            result[index] = _aligned(item, match)
    while rest and not key and None in result:
        result[result.index(None)] = rest.pop(0)
    return [*result, *rest]


def _taken(rest: list[Any], matches: Callable[[Any], bool]) -> Any:
    """Remove and return the first item of a list that matches; None without one."""
    found = next((item for item in rest if matches(item)), None)
    if found is not None:
        rest.remove(found)
    return found


def _identity(items: Sequence[Any]) -> str:
    """Return the property that identifies the items of a list; empty if there is none."""
    if not items or not all(isinstance(item, dict) for item in items):
        return ""
    return next((name for name in _IDENTITIES if all(name in item for item in items)), "")


@dataclass(frozen=True, slots=True)
class _Compared:
    """A resource of the state beside the same as read, whose lists have equal positions.

    Attributes:
        old: outputs in the state.
        new: outputs as read.
        declared: inputs in the state.
    """

    resource: ReadResource
    old: dict[str, Plain]
    new: dict[str, Plain]
    declared: dict[str, Plain]

    def differences(self) -> Iterator[Difference]:
        """Yield the differences that the provider does not ignore."""
        for path, old, new in differences(self.old, self.new):
            keys = path_keys(path)
            if not self._is_ignored(plain_path(path), keys, old, new):
                maker, source = self._maker(keys, old, new)
                is_conflict = maker == "person" and self._is_conflict(keys)
                yield Difference(path, old, new, maker, source, is_conflict)

    def _is_ignored(self, path: str, keys: Sequence[Key], old: Plain, new: Plain) -> bool:
        match self.resource.type.partition(":")[0]:
            case "gcp":
                return google.is_same(self.resource.type, path, old, new)
            case "azure-native":
                return azure.is_same(path, old, new) or (old in _EMPTY and new in _EMPTY)
            case "kubernetes":
                about = keys[0] == "metadata" and len(keys) > 1 and keys[1] in _BOOKKEEPING
                return about or kubernetes.is_same(path, old, new)
            case _:
                return False

    def _maker(self, keys: Sequence[Key], old: Plain, new: Plain) -> tuple[Maker, str]:
        if old is None and isinstance(new, dict) and new:
            added = [self._maker((*keys, key), None, item) for key, item in new.items()]
            if all(maker != "person" for maker, _ in added):
                return added[0]
        names = ".".join(key for key in keys if isinstance(key, str))
        rows = [row for row in makers_of(self.resource.type) if row.applies(names)]
        if not _is_argument(self.resource.type, keys):
            return "cloud", "an output that no program sets"
        fills = constraints_of(self.resource.type).fills
        if old is None and names in fills and fills[names] == new:
            return "cloud", "the cloud's default"
        for row in rows:
            if row.known_maker and self._holds(row, keys):
                return row.known_maker, row.source
        return self._manager(keys, rows)

    def _holds(self, row: MakerRow, keys: Sequence[Key]) -> bool:
        """Return whether the condition of a row holds, other than that of a field manager."""
        word_, _, name = row.condition.partition(" ")
        match word_:
            case "":
                return True
            case "undeclared":
                return _at(self.declared, keys) is None
            case "new":
                return _at(self.declared, keys) is None and _at(self.old, keys) is None
            case "if":
                beside = _at(self.old, _above(keys, row.path.count(".")))
                return isinstance(beside, dict) and bool(beside.get(name))
            case _:
                return False

    def _manager(self, keys: Sequence[Key], rows: Sequence[MakerRow]) -> tuple[Maker, str]:
        """Return the maker of a difference from the field managers of a Kubernetes object."""
        others = sorted({str(item.get("manager")) for item in self._owners(keys)})
        sources = [row.source for name in others for row in rows if row.is_of_manager(name)]
        about = f"field manager {', '.join(others)}" if others else ""
        if others and len(sources) >= len(others):
            return "controller", f"{about}: {sources[0]}"
        return "person", about

    def _owners(self, keys: Sequence[Key]) -> list[Mapping[str, Any]]:
        """Return the entries of `managedFields` that own a field, without those of the provider."""
        return [
            item
            for item in _items(_at(self.new, ("metadata", "managedFields")))
            if not str(item.get("manager")).startswith(_OWN) and _owns(item.get("fieldsV1"), keys, self.new)
        ]

    def _is_conflict(self, keys: Sequence[Key]) -> bool:
        """Return whether server-side apply of the declared value fails, if there is one."""
        kind = self.resource.type.rpartition(":")[2]
        is_forced = _at(self.declared, ("metadata", "annotations", PATCH_FORCE)) == "true"
        if is_forced or kind == "CustomResourceDefinition":  # which is replaced
            return False
        return any(
            item.get("subresource")
            or kind.endswith("Patch")
            or not str(item.get("manager")).startswith(_TAKEN_OVER)
            for item in self._owners(keys)
        )


def _at(value: Any, keys: Sequence[Key]) -> Plain:
    return value_at(value, path_text(keys))


def _above(keys: Sequence[Key], names: int) -> Sequence[Key]:
    """Return the first keys of a path: a number of names, and the indices after them."""
    count = 0
    for position, key in enumerate(keys):
        if isinstance(key, str):
            if count == names:
                return keys[:position]
            count += 1
    return keys


def _is_argument(token: str, keys: Sequence[Key]) -> bool:
    """Return whether a program can set a property; True for types that are not inspected."""
    if token.startswith("kubernetes:"):
        return True
    try:
        hint: Any = arguments(token)
    except LookupError:
        return True
    for key in keys:
        kind = alternatives(hint)[0]
        match word(kind):
            case "list" if isinstance(key, int):
                hint = item_of(kind)
            case "object" if isinstance(key, str):
                known = properties_of(kind)
                if key not in known:
                    return False
                hint = known[key].hint
            case _:
                return True
    return True


def _owns(fields: Any, keys: Sequence[Key], value: Any) -> bool:
    """Return whether fields in the form of `fieldsV1` include a path (Kubernetes API, FieldsV1)."""
    for key in keys:
        if not isinstance(fields, dict):
            return False
        members = cast("dict[str, Any]", fields)
        if not members.keys() - {"."}:
            return True  # an atomic list or map
        if isinstance(key, str):
            fields = members.get(f"f:{key}")
            value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, dict) else None
        else:
            items = cast("list[Any]", value) if isinstance(value, list) else []
            value = items[key] if key < len(items) else None
            fields = next((below for name, below in members.items() if _selects(name, value, key)), None)
        if fields is None:
            return False
    return True


def _selects(name: str, item: Any, index: int) -> bool:
    """Return whether the name of a list's member in `fieldsV1` selects an item."""
    kind, _, text = name.partition(":")
    match kind:
        case "k" if isinstance(item, dict):
            known = cast("dict[str, Any]", item)
            return all(known.get(key) == value for key, value in json.loads(text).items())
        case "v":
            return json.loads(text) == item
        case "i":
            return int(text) == index
        case _:
            return False


def undo(type_: str, id_: str, path: str, value: Any) -> str:
    """Return how to set a property back, as a command or the end of a sentence.

    Args:
        type_: type token of the resource.
        id_: its id.
        path: path of the property.
        value: its value in the state; None if it was absent there.
    """
    keys, old = path_keys(path), json.dumps(value, ensure_ascii=False)
    back = f"set it back to {old}" if value is not None else "remove it"
    is_plain = SECRET_TEXT not in old and all(isinstance(key, str) for key in keys)
    nested = value
    for key in reversed(keys):
        nested = {key: nested}
    document = json.dumps(nested, ensure_ascii=False)
    package = type_.partition(":")[0]
    if package == "kubernetes":
        namespace, _, name = id_.rpartition("/")
        named = f"{type_.rpartition(':')[2].removesuffix('Patch').lower()} {name}"
        within = f" --namespace {namespace}" if namespace else ""
        if not is_plain:
            return f"{back}, with `kubectl edit {named}{within}`"
        return f"kubectl patch {named}{within} --type merge --patch {shlex.quote(document)}"
    if is_plain and value is not None and (place := _place(type_, plain_path(path), document)):
        return f"declare {place}, and the update after the refresh sets it back to {old}"
    tools = f", or with {_TOOLS[package]}" if package in _TOOLS else ""
    return f"lost by a refresh, and nothing declares it: {back} before, in the console of the cloud{tools}"


def _place(type_: str, path: str, document: str) -> str:
    """Return what declares an input of a node pool or a cluster: its field, or else an override; empty for
    other resources."""
    for tables, above in ((POOLS, ""), (CLUSTERS, "cloud.")):
        for known in tables.values():
            if known.token == type_:
                fields = (
                    field
                    for derived, field in known.derived.items()
                    if is_within(path, derived) or is_within(derived, path)
                )
                return f"`{next(fields, f'{above}overrides: {document}')}`"
    return ""
