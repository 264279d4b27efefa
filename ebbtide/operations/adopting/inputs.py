"""Attributes of a resource under a provider's own names, fitted to the inputs of Pulumi's type.

Documents of GKE's API and of Terraform spell the same properties in other ways: in snake case, in the
singular for a list, a block as a list of one object, numbers and booleans as text. The installed SDK has the
properties and their types, and decides.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, cast

from pydantic.alias_generators import to_camel

from ebbtide.analysis.changes.property_path import plain_path, replaced
from ebbtide.analysis.recording.values import Plain, is_secret, leaves
from ebbtide.declaration.providers.schema import (
    Property,
    alternatives,
    item_of,
    properties,
    properties_of,
    required_zeroes,
    word,
)
from ebbtide.values.paths import child_path

_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_HELD: Final = re.compile(r"(?:(?:nodeConfig|agentPoolProfiles|nodePools(?:\.nodeConfig)?)\.)?[^.]*")


@dataclass(slots=True)
class Fitted:
    """The inputs of a resource.

    Attributes:
        inputs: the inputs with a value, in the provider's names.
        output_only: paths of attributes that are not inputs.
    """

    inputs: dict[str, Plain]
    output_only: list[str] = field(default_factory=list[str])


def fitted(token: str, attributes: Mapping[str, Any]) -> Fitted:
    """Return the inputs in a resource's attributes.

    Args:
        token: the resource's type.
        attributes: attributes in camel or snake case.
    """
    result = Fitted({})
    result.inputs = dict(_object(properties(token), attributes, "", result))
    return result


def _object(
    known: Mapping[str, Property], values: Mapping[str, Any], path: str, into: Fitted
) -> Iterator[tuple[str, Plain]]:
    names = {name.lower(): name for name in known}
    for key, value in values.items():
        name = _name(key, names)
        if value in _EMPTY:
            continue
        if name is None:
            into.output_only += [
                leaf for leaf, item in leaves(value, child_path(path, key)) if item is not None
            ]
            continue
        fits = _value(known[name].hint, value, child_path(path, name), into)
        if fits not in _EMPTY:
            yield name, fits


def _name(key: str, names: Mapping[str, str]) -> str | None:
    """Return the property of an attribute; Terraform names a list of blocks in the singular."""
    camel = to_camel(key).lower() if "_" in key else key.lower()
    plurals = (f"{camel}s", f"{camel.removesuffix('y')}ies", camel.removesuffix("s"))
    return next((names[name] for name in (camel, *plurals) if name in names), None)


def _value(hint: Any, value: Any, path: str, into: Fitted) -> Plain:
    choice = alternatives(hint)[0]
    match word(choice), value:
        case "object", [only]:
            return _value(hint, only, path, into)
        case "object", dict():
            known = properties_of(choice)
            fits = dict(_object(known, cast("dict[str, Any]", value), path, into))
            # Google's API omits zeroes, also required ones.
            return {**required_zeroes(known), **fits} if fits else fits
        case "list", list():
            items = cast("list[Any]", value)
            each = item_of(choice)
            return [_value(each, item, child_path(path, index), into) for index, item in enumerate(items)]
        case "list", _:
            return [_value(item_of(choice), value, child_path(path, 0), into)]
        case "map", dict():
            each, values = item_of(choice), cast("dict[str, Any]", value)
            return {key: _value(each, item, child_path(path, key), into) for key, item in values.items()}
        case kind, _:
            return (
                _spelled(hint, value) if isinstance(value, str) and kind == "string" else _scalar(kind, value)
            )


def _spelled(hint: Any, text: str) -> str:
    """Return the value of an enum in the provider's spelling."""
    enums = [choice for choice in alternatives(hint) if isinstance(choice, type) and issubclass(choice, Enum)]
    members = [str(member.value) for choice in enums for member in choice]
    return next((member for member in members if member.lower() == text.lower()), text)


def _scalar(kind: str, value: Any) -> Plain:
    match kind, value:
        case "int" | "number", str() if value.lstrip("-").isdecimal():
            return int(value)
        case "bool", "true" | "false" | "TRUE" | "FALSE":
            return value.lower() == "true"
        case "string", bool():
            return str(value).upper()
        case "string", int() | float():
            return str(value)
        case _:
            return value


def without_secrets(inputs: Mapping[str, Plain]) -> tuple[dict[str, Plain], tuple[str, ...]]:
    """Return inputs without the properties that hold a secret, and the paths of these properties.

    A property is at the top, or in the configuration of nodes: the cloud keeps one that an update omits as a
    whole.
    """
    held = (plain_path(path) for path, value in leaves(dict(inputs)) if is_secret(path, value))
    paths = tuple(dict.fromkeys(_HELD.findall(path)[0] for path in held))
    result = dict(inputs)
    for path in paths:
        result = replaced(result, path, removed)
    return result, paths


def removed(_: object) -> None:
    """Remove a value, as a change of `replaced`."""


def merged_deeply(under: Any, over: Any) -> Any:
    """Return a value with another one's values, objects by key, and lists of the same length by index."""
    if isinstance(under, dict) and isinstance(over, dict):
        old, new = cast("dict[str, Any]", under), cast("dict[str, Any]", over)
        return {**old, **{key: merged_deeply(old.get(key), item) for key, item in new.items()}}
    if isinstance(under, list) and isinstance(over, list) and len(under) == len(over):  # pyright: ignore[reportUnknownArgumentType] # JSON
        pairs = zip(cast("list[Any]", under), cast("list[Any]", over), strict=True)
        return [merged_deeply(old, new) for old, new in pairs]
    return cast("Any", over)


def moved(item: Mapping[str, Any], table: Mapping[str, str | None]) -> dict[str, Any]:
    """Return a document with the values of paths at other paths, in order; None removes one."""
    document = copy.deepcopy(dict(item))
    for source, target in table.items():
        value = _taken(document, source.split("."))
        if value is None or target is None:
            continue
        *parents, last = target.split(".")
        holder = document
        for parent in parents:
            holder = holder.setdefault(parent, {})
        old = holder.get(last)
        both = isinstance(old, dict) and isinstance(value, dict)
        holder[last] = {**cast("dict[str, Any]", old), **cast("dict[str, Any]", value)} if both else value
    return document


def _taken(document: dict[str, Any], keys: list[str]) -> Any:
    """Remove the value at a path, and return it; None if there is none."""
    *parents, last = keys
    holder: Any = document
    for parent in parents:
        holder = cast("dict[str, Any]", holder).get(parent) if isinstance(holder, dict) else None
    return cast("dict[str, Any]", holder).pop(last, None) if isinstance(holder, dict) else None
