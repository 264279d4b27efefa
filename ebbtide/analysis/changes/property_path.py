"""Properties by path, and the differences between two sets of them."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final, cast

from ebbtide.analysis.recording.values import UNKNOWN, Plain
from ebbtide.values.paths import child_path

_INDEX: Final = re.compile(r"\[\d+\]")


def plain_path(path: str) -> str:
    """Return a path without its indices: `nodeConfig.taints.key` of `nodeConfig.taints[0].key`."""
    return _INDEX.sub("", path)


def top_level(path: str) -> str:
    """Return the first property of a path."""
    return path.partition(".")[0].partition("[")[0]


def values_at(values: Plain, path: str, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all known values at a path without indices, with their paths; lists on the path yield a value for
    each item. The last key may contain dots."""
    head, _, rest = path.partition(".")
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from values_at(item, path, f"{where}[{index}]")
    elif not path:
        if values is not None and values is not UNKNOWN:
            yield where, values
    elif isinstance(values, dict):
        head, rest = (path, "") if path in values else (head, rest)
        yield from values_at(values.get(head), rest, f"{where}.{head}" if where else head)


def differences(old: Plain, new: Plain, path: str = "") -> Iterator[tuple[str, Plain, Plain]]:
    """Yield the paths at which two values differ, with both values, down to the deepest common objects and
    lists.

    None is an absent value, including an item that only one list has.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            yield from differences(old.get(key), new.get(key), child_path(path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index, (before, after) in enumerate(zip_longest(old, new)):
            yield from differences(before, after, child_path(path, index))
    elif new is UNKNOWN or old != new:
        yield path, old, new


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with another object's values merged over it: objects by key, other values as a
    whole."""
    both = {
        key: merged(cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", item))
        for key, item in over.items()
        if isinstance(old := under.get(key), dict) and isinstance(item, dict)
    }
    return {**under, **over, **both}


def with_defaults(values: Mapping[str, Plain], defaults: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return values with defaults for absent paths; a default within an object applies only if the object
    exists."""
    result = dict(values)
    for path, default in defaults.items():
        head, _, rest = path.partition(".")
        current = result.get(head)
        if not rest:
            result[head] = default if current is None else current
        elif isinstance(current, dict):
            result[head] = with_defaults(current, {rest: default})
        elif isinstance(current, list):
            result[head] = [
                with_defaults(item, {rest: default}) if isinstance(item, dict) else item for item in current
            ]
    return result


def replaced(values: Mapping[str, Any], path: str, change: Any) -> dict[str, Any]:
    """Return values with the value at a path replaced by `change(value)`; None removes it.

    A list on the path is changed in each item; a path that does not exist changes nothing.
    """
    head, _, rest = path.partition(".")
    if head not in values:
        return dict(values)
    current = values[head]
    if not rest:
        current = change(current)
    elif isinstance(current, Mapping):
        current = replaced(current, rest, change)  # pyright: ignore[reportUnknownArgumentType] # JSON
    elif isinstance(current, list):
        current = [replaced(item, rest, change) if isinstance(item, dict) else item for item in current]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] # JSON
    return {key: item for key, item in {**values, head: current}.items() if item is not None}
