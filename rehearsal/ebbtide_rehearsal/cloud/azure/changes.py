"""What a change of inputs means to azure-native 3.29 (`provider/pkg/provider/diff.go`, `provider.go`): inputs
are compared with inputs, whatever is really there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ebbtide_rehearsal.cloud.azure.ids import names
from ebbtide_rehearsal.cloud.azure.kind import Kind
from ebbtide_rehearsal.cloud.provider import Change, Properties, Read

RANDOMLY_NAMED: Final = "__createBeforeDelete"
"""azure-native's note to itself: the name is its own, so that the new one can come before the old one
goes."""

_ABSENT: Final = object()


def change(kind: Kind, old: Read, new: Properties) -> Change:
    """What new inputs of a resource mean."""
    fixed = kind.replaces | set(names(kind.path))
    changed: dict[str, bool] = {}
    for path, before, after in _differences(old.inputs, new, ""):
        top = path.partition(".")[0].partition("[")[0]
        is_new = before is _ABSENT and old.state.get(path) == after
        changed[top] = changed.get(top, False) or (not is_new and _is_fixed(path, fixed))
    replaces = tuple(name for name, anew in changed.items() if anew)
    can_be_first = old.inputs.get(RANDOMLY_NAMED) is True
    return Change(tuple(changed), replaces, delete_first=bool(replaces) and not can_be_first)


def same_place(one: str, other: str) -> bool:
    """Whether two names are of one region: `West US 2` is `westus2`."""
    return one.replace(" ", "").lower() == other.replace(" ", "").lower()


def _is_fixed(path: str, fixed: set[str] | frozenset[str]) -> bool:
    """Whether a path, or what it is in, can only be had anew."""
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in fixed)


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Paths that differ, with both values; indices of lists are left empty."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, after = cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", new)
        for key in {**before, **after}:
            below = f"{path}.{key}" if path else key
            yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), below)
    elif isinstance(old, list) and isinstance(new, list):
        one, other = cast("list[Any]", old), cast("list[Any]", new)
        for index in range(max(len(one), len(other))):
            items = [each[index] if index < len(each) else _ABSENT for each in (one, other)]
            yield from _differences(items[0], items[1], f"{path}[]")
    elif path == "location" and isinstance(old, str) and isinstance(new, str):
        if not same_place(old, new):
            yield path, old, new
    elif _value(old) != _value(new) and path != RANDOMLY_NAMED:
        yield path, old, new


def _value(value: Any) -> Any:
    """Nothing is as good as absent: azure-native skips nulls."""
    return None if value is _ABSENT else value
