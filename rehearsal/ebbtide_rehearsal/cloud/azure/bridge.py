"""azure-native 3.29: defaults and validation of inputs, and the inputs of a resource after a read.

Sources: pulumi-azure-native, provider/pkg/provider: provider.go (`applyDefaults`, `validateType`,
`validateProperty`, `Read`) and diff.go (`applyDiff`). Inputs as read are the old inputs, with the changes
from the last known state to the state as read.
"""

from collections.abc import Mapping
from typing import Any, Final, cast
from uuid import uuid4

from ebbtide.analysis.providers.azure import RANDOMLY_NAMED
from ebbtide.analysis.recording.values import UNKNOWN
from ebbtide.declaration.providers import schema as provider_schema
from ebbtide.values.paths import child_path
from ebbtide_rehearsal.cloud import schema
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import Arm, ResourceKind, inner
from ebbtide_rehearsal.cloud.provider import Properties

API_VERSION: Final = "azureApiVersion"

_RANDOM: Final = 8


def completed(kind: ResourceKind, arm: Arm, name: str, old: Properties, new: Properties) -> dict[str, Any]:
    """Return the inputs of a resource, with name, region and API version."""
    inputs: dict[str, Any] = {key: value for key, value in new.items() if value is not None}
    own = ids.names(kind.path)[-1]
    if own not in inputs:
        is_uuid = kind.type.endswith(":RoleAssignment")
        generated = str(uuid4()) if is_uuid else f"{name}{uuid4().hex[:_RANDOM]}"
        inputs[own] = old.get(own) or generated
        inputs[RANDOMLY_NAMED] = True
    if "location" in provider_schema.properties(kind.type) and "location" not in inputs:
        location = old.get("location") or arm.location or _location_of_group(arm, inputs)
        if location is not None:
            inputs["location"] = location
    inputs.setdefault(API_VERSION, kind.api_version)
    return inputs


def _location_of_group(arm: Arm, inputs: Mapping[str, Any]) -> Any:
    name = inputs.get("resourceGroupName")
    if name is UNKNOWN:
        return UNKNOWN
    group = arm.find(ids.identity(ids.GROUP, arm.subscription, inputs)) if name else None
    return group.state.get("location") if group else None


def unknown(token: str, inputs: Properties) -> list[str]:
    """Return the paths of properties that are not in the schema, which azure-native drops silently."""
    given = {key: value for key, value in inputs.items() if key != API_VERSION}
    return [
        violation.path
        for violation in schema.schema_violations(token, given)
        if violation.problem == "unknown"
    ]


def sent(inputs: Properties, omitted: list[str]) -> dict[str, Any]:
    """Return the inputs that are sent to Azure: without the omitted paths and azure-native's metadata."""
    own = {API_VERSION, RANDOMLY_NAMED}
    given = {key: value for key, value in inputs.items() if key not in own}
    return cast("dict[str, Any]", _pruned(given, "", frozenset(omitted)))


def _pruned(value: Any, path: str, omitted: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        below = {key: child_path(path, key) for key, _ in items}
        return {key: _pruned(item, below[key], omitted) for key, item in items if below[key] not in omitted}
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return [_pruned(item, child_path(path, index), omitted) for index, item in enumerate(listed)]
    return value


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
