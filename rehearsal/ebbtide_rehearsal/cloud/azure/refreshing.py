"""Inputs of a resource after a read by azure-native 3.29 (`provider/pkg/provider`, `Read` in provider.go and
`applyDiff` in diff.go): the old inputs, with the changes from the last known state to the state as read.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from ebbtide.declaration.providers import schema as provider_schema
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.check import API_VERSION
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.provider import Properties

_ABSENT: Final = object()


def refreshed(kind: ResourceKind, inputs: Properties, known: Properties, now: Properties) -> dict[str, Any]:
    """Return the inputs of a resource after a refresh.

    Args:
        kind: type of the resource.
        inputs: inputs in the engine's state.
        known: last known state.
        now: state as read.
    """
    left_alone = {name for name in kind.inside if name not in inputs}
    before, after = _projected(kind, known), _projected(kind, now)
    for name in left_alone:
        before.pop(name, None)
        after.pop(name, None)
    return cast("dict[str, Any]", _applied(dict(inputs), before, after))


def imported(kind: ResourceKind, identity: str, now: Properties) -> dict[str, Any]:
    """Return the inputs of an imported resource, from its id and its state."""
    return {**_projected(kind, now), **ids.parts(kind.path, identity), API_VERSION: kind.api_version}


def _projected(kind: ResourceKind, state: Properties) -> dict[str, Any]:
    """Return the inputs in a state."""
    takes = provider_schema.properties(kind.type)
    projected = {name: value for name, value in state.items() if name in takes}
    assigned = inner(inner(state, "identity"), "userAssignedIdentities")
    if assigned:
        projected["identity"] = {**inner(state, "identity"), "userAssignedIdentities": list(assigned)}
    return projected


def _applied(inputs: Any, before: Any, after: Any) -> Any:
    """Return inputs with the changes of the state applied."""
    if before == after:
        return inputs
    if all(isinstance(value, Mapping) for value in (inputs, before, after)):
        return _applied_to_object(inputs, before, after)
    if all(isinstance(value, list) for value in (inputs, before, after)):
        return [
            _applied(inputs[index], before[index], item) if index < min(len(inputs), len(before)) else item
            for index, item in enumerate(cast("list[Any]", after))
        ]
    return after


def _applied_to_object(
    inputs: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    applied = {key: value for key, value in inputs.items() if key in after or key not in before}
    for key, value in after.items():
        old = before.get(key, _ABSENT)
        if old is _ABSENT or key not in inputs:
            if old != value:
                applied[key] = value
        else:
            applied[key] = _applied(inputs[key], old, value)
    return applied
