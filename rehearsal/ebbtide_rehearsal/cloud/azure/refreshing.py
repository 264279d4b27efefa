"""What azure-native 3.29 takes for a resource's inputs after it has read it (`provider/pkg/provider`, `Read`
in provider.go and `applyDiff` in diff.go): the old inputs, with what has changed between the last known state
and the one read.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from ebbtide import provider_schema
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.check import API_VERSION
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.provider import Properties

_ABSENT: Final = object()


def refreshed(kind: ResourceKind, asked: Properties, known: Properties, now: Properties) -> dict[str, Any]:
    """The inputs of a resource that was read.

    Args:
        kind: its type.
        asked: the inputs that the engine has for it.
        known: its last known state.
        now: its state as read.
    """
    left_alone = {name for name in kind.inside if name not in asked}
    before, after = _projected(kind, known), _projected(kind, now)
    for name in left_alone:
        before.pop(name, None)
        after.pop(name, None)
    return cast("dict[str, Any]", _applied(dict(asked), before, after))


def imported(kind: ResourceKind, identity: str, now: Properties) -> dict[str, Any]:
    """The inputs of a resource that is only read: from its id and its state."""
    return {**_projected(kind, now), **ids.parts(kind.path, identity), API_VERSION: kind.api_version}


def _projected(kind: ResourceKind, state: Properties) -> dict[str, Any]:
    """The part of a state that can be asked for, in the form in which it is."""
    takes = provider_schema.properties(kind.type)
    found = {name: value for name, value in state.items() if name in takes}
    assigned = inner(inner(state, "identity"), "userAssignedIdentities")
    if assigned:
        found["identity"] = {**inner(state, "identity"), "userAssignedIdentities": list(assigned)}
    return found


def _applied(asked: Any, before: Any, after: Any) -> Any:
    """What was asked for, changed as the state has changed."""
    if before == after:
        return asked
    if all(isinstance(one, Mapping) for one in (asked, before, after)):
        return _applied_to_object(asked, before, after)
    if all(isinstance(one, list) for one in (asked, before, after)):
        return [
            _applied(asked[index], before[index], item) if index < min(len(asked), len(before)) else item
            for index, item in enumerate(cast("list[Any]", after))
        ]
    return after


def _applied_to_object(
    asked: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    applied = {key: value for key, value in asked.items() if key in after or key not in before}
    for key, value in after.items():
        old = before.get(key, _ABSENT)
        if old is _ABSENT or key not in asked:
            if old != value:
                applied[key] = value
        else:
            applied[key] = _applied(asked[key], old, value)
    return applied
