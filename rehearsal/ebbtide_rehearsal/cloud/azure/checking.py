"""What azure-native 3.29 does to inputs before anything is planned (`provider/pkg/provider/provider.go`,
`applyDefaults` and `validateType`): names, region and API version are filled in, and the schema's limits
hold.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from uuid import uuid4

from ebbtide import provider_schema
from ebbtide.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud import schema
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.changes import RANDOMLY_NAMED
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit
from ebbtide_rehearsal.cloud.provider import Failure, Properties

API_VERSION: Final = "azureApiVersion"

_WORDS: Final = {"bool": "boolean", "int": "integer", "list": "array", "map": "object"}
_RANDOM: Final = 8


def completed(kind: Kind, arm: Arm, name: str, old: Properties, new: Properties) -> dict[str, Any]:
    """The inputs of a resource, with what azure-native fills in."""
    inputs: dict[str, Any] = {key: value for key, value in new.items() if value is not None}
    own = ids.names(kind.path)[-1]
    if own not in inputs:
        is_uuid = kind.token.endswith(":RoleAssignment")
        made = str(uuid4()) if is_uuid else f"{name}{uuid4().hex[:_RANDOM]}"
        inputs[own] = old.get(own) or made
        inputs[RANDOMLY_NAMED] = True
    if "location" in provider_schema.properties(kind.token) and "location" not in inputs:
        place = old.get("location") or arm.location or _place_of_group(arm, inputs)
        if place is not None:
            inputs["location"] = place
    inputs.setdefault(API_VERSION, kind.api_version)
    return inputs


def _place_of_group(arm: Arm, inputs: Mapping[str, Any]) -> Any:
    name = inputs.get("resourceGroupName")
    if name is UNKNOWN:
        return UNKNOWN
    group = arm.find(ids.identity(ids.GROUP, arm.subscription, inputs)) if name else None
    return group.state.get("location") if group else None


def failures(kind: Kind, inputs: Properties) -> list[Failure]:
    """What the schema has against inputs."""
    given = {key: value for key, value in inputs.items() if key != API_VERSION}
    return [*_misfits(kind, given), *_outside(kind, given)]


def _misfits(kind: Kind, inputs: Properties) -> Iterator[Failure]:
    for misfit in schema.misfits(kind.token, inputs):
        if misfit.problem == "missing":
            yield _missing(misfit.path)
        elif misfit.problem == "type":
            wanted = _WORDS.get(misfit.wanted, misfit.wanted)
            yield Failure(misfit.path, f"'{misfit.path}' should be of type '{wanted}'")
    for name in kind.needed:
        if name not in inputs:
            yield _missing(name)


def _missing(path: str) -> Failure:
    reason = f"missing required property '{path}'"
    if path == "location":
        reason += ". Either set it explicitly or configure it with "
        reason += "'pulumi config set azure-native:location <value>'."
    return Failure(path, reason)


def _outside(kind: Kind, inputs: Properties) -> Iterator[Failure]:
    for path, limit in kind.limits.items():
        for where, value in _at(inputs, path.split(".")):
            yield from (Failure(where, reason) for reason in _reasons(where, value, limit))


def _at(value: Any, steps: list[str], where: str = "") -> Iterator[tuple[str, Any]]:
    """What stands at a path, in each item of its lists."""
    if not steps:
        yield where, value
        return
    name, *rest = steps
    key = name.removesuffix("[]")
    inner = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    below = f"{where}.{key}" if where else key
    if name == key:
        if inner is not None:
            yield from _at(inner, rest, below)
    elif isinstance(inner, list):
        for index, item in enumerate(cast("list[Any]", inner)):
            yield from _at(item, rest, f"{below}[{index}]")


def _reasons(where: str, value: Any, limit: Limit) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) < limit.shortest:
            yield f"'{where}' is too short ({len(value)}): at least {limit.shortest} characters required"
        if limit.longest is not None and len(value) > limit.longest:
            yield f"'{where}' is too long ({len(value)}): at most {limit.longest} characters allowed"
        if limit.pattern and not re.search(limit.pattern, value):
            yield f"'{where}' does not match expression '{limit.pattern}'"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if limit.least is not None and value < limit.least:
            yield f"'{where}' is too low ({value:f} < {limit.least:f})"
        if limit.most is not None and value > limit.most:
            yield f"'{where}' is too high ({value:f} > {limit.most:f})"


def unknown(kind: Kind, inputs: Properties) -> list[str]:
    """Paths of what the schema does not have. azure-native sends it to nobody, and does not fail."""
    given = {key: value for key, value in inputs.items() if key != API_VERSION}
    return [one.path for one in schema.misfits(kind.token, given) if one.problem == "unknown"]


def sent(inputs: Properties, left_out: list[str]) -> dict[str, Any]:
    """Inputs as they reach Azure: without what the schema does not have, and azure-native's own notes."""
    own = {API_VERSION, RANDOMLY_NAMED}
    given = {key: value for key, value in inputs.items() if key not in own}
    return cast("dict[str, Any]", _pruned(given, "", frozenset(left_out)))


def _pruned(value: Any, path: str, left_out: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        below = {key: f"{path}.{key}" if path else key for key, _ in items}
        return {key: _pruned(item, below[key], left_out) for key, item in items if below[key] not in left_out}
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return [_pruned(item, f"{path}[{index}]", left_out) for index, item in enumerate(listed)]
    return value
