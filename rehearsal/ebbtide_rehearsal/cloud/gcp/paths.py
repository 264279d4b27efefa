"""Properties by path, and where two sets of them differ."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ebbtide.recording.values import UNKNOWN, Plain

_INDEX: Final = re.compile(r"\[\d+\]")


def plain_path(path: str) -> str:
    """A path without its indices: `nodeConfig.taints[0].key` is `nodeConfig.taints.key`."""
    return _INDEX.sub("", path)


def values_at(values: Plain, path: str) -> Iterator[Any]:
    """All known values at a path without indices: those of each item where there are lists on the way."""
    head, _, rest = path.partition(".")
    if isinstance(values, list):
        for item in values:
            yield from values_at(item, path)
    elif not path:
        if values is not None and values is not UNKNOWN:
            yield values
    elif isinstance(values, dict):
        yield from values_at(values.get(head), rest)


def differences(old: Plain, new: Plain, path: str = "") -> Iterator[tuple[str, Plain, Plain]]:
    """The paths at which two values differ, with the old and the new one: as deep as both have objects or
    lists of as many items. What is not there and what is empty are the same, as Terraform has it."""
    if _is_empty(old) and _is_empty(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif new is UNKNOWN or old != new:
        yield path, old, new


def _is_empty(value: Plain) -> bool:
    return value is None or value in ({}, [])


def laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs over inputs: objects key by key, anything else as the outputs have it."""
    return {**under, **{key: _laid(under.get(key), item) for key, item in over.items()}}


def _laid(under: Plain, over: Plain) -> Plain:
    return laid_over(under, over) if isinstance(under, dict) and isinstance(over, dict) else over


def filled(values: Mapping[str, Plain], defaults: Mapping[str, Plain]) -> dict[str, Plain]:
    """Values with defaults, by path, where nothing stands: within an object only where that is there."""
    found = dict(values)
    for path, default in defaults.items():
        head, _, rest = path.partition(".")
        there = found.get(head)
        if not rest:
            found[head] = default if there is None else there
        elif isinstance(there, dict):
            found[head] = filled(there, {rest: default})
        elif isinstance(there, list):
            found[head] = [filled(one, {rest: default}) if isinstance(one, dict) else one for one in there]
    return found
