"""Ids, inputs and states of the fake clouds' resources, by the templates of previews and the schemas, which
also validate inputs as providers do."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from ebbtide.analysis.changes import azure, google
from ebbtide.analysis.changes.azure import API_VERSION, RANDOMLY_NAMED
from ebbtide.analysis.changes.property_path import replaced, with_defaults
from ebbtide.analysis.recording import assumed_azure, assumed_gcp
from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.declaration.providers.schema import (
    alternatives,
    arguments,
    item_of,
    properties,
    properties_of,
    word,
)
from ebbtide.values.paths import child_path
from ebbtide_rehearsal.cloud.ids import BUCKET, GCP, NODE_POOL
from ebbtide_rehearsal.cloud.provider import Properties

TEMPLATES: Final = {**assumed_gcp.RESOURCES, **assumed_azure.RESOURCES}
"""Types that the fake clouds have."""
AKS_API: Final = "2025-09-01"

_ANSWERS: Final[Mapping[tuple[str, str], Callable[[Any], Any]]] = {
    # Cloud Storage API, buckets: location in capitals (2026)
    (BUCKET, "location"): str.upper,
    # hashicorp/terraform-provider-google#25388; vllm-project/ci-infra#547 (2026)
    (NODE_POOL, "placementPolicy"): lambda policy: (
        {**policy, "type": ""} if policy.get("policyName") else policy
    ),
}
"""Values that a cloud answers otherwise than they were sent."""
Problem = Literal["unknown", "missing", "type"]


def as_answered(token: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's state as its cloud answers it: with the values that it fills in."""
    result = with_defaults(state, constraints_of(token).fills)
    for (type_, path), change in _ANSWERS.items():
        result = replaced(result, path, change) if type_ == token else result
    return result


def names(token: str) -> tuple[str, ...]:
    """Return the inputs in a type's id, the resource's name last."""
    return azure.names(TEMPLATES[token].id)


def _segments(template: str) -> list[str]:
    return re.sub(r"\{[^}]*\}", "*", template).split("/")


def parent_of(token: str, identity: str) -> str:
    """Return the id of the resource that a resource is in; empty for none."""
    own = _segments(TEMPLATES[token].id)
    lengths = (
        len(other)
        for other in map(_segments, (template.id for template in TEMPLATES.values()))
        if 1 < len(other) < len(own) and own[: len(other)] == other and other[-2] != "*"
    )
    length = max(lengths, default=0)
    return "/".join(identity.split("/")[:length])


def type_of(token: str) -> str | None:
    """Return the type of the resources that a function is about; None for none."""
    package, module, name = token.split(":")
    about = re.sub("^(get|list)", "", name)
    for type_ in TEMPLATES:
        of, within, own = type_.split(":")
        is_same = (of, within.partition("/")[0]) == (package, module.partition("/")[0])
        if is_same and about.startswith(own):
            return type_
    return None


def unknown_paths(token: str, inputs: Properties) -> list[str]:
    """Return the paths of the properties that are not in a type's schema."""
    return [
        item.path
        for item in schema_violations(token, inputs)
        if item.problem == "unknown" and item.path != API_VERSION
    ]


def pruned(value: Plain, omitted: Sequence[str], path: str = "") -> Plain:
    """Return a value without the omitted paths."""
    if isinstance(value, dict):
        below = {key: child_path(path, key) for key in value}
        return {
            key: pruned(value[key], omitted, where) for key, where in below.items() if where not in omitted
        }
    if isinstance(value, list):
        return [pruned(item, omitted, child_path(path, index)) for index, item in enumerate(value)]
    return value


def unknown(value: Plain) -> Plain:
    """Return a value whose scalars are unknown."""
    if isinstance(value, dict):
        return {key: unknown(item) for key, item in value.items()}
    return [unknown(item) for item in value] if isinstance(value, list) else UNKNOWN


def is_own(token: str, name: str) -> bool:
    """Return whether an input is the provider's own, which its cloud does not have."""
    return name in (API_VERSION, RANDOMLY_NAMED) or (not token.startswith(GCP) and name in names(token))


def read_back(token: str, path: str, given: Plain, now: Plain) -> Plain:
    """Return an input as read: the cloud's value where it differs."""
    if isinstance(given, dict) and isinstance(now, dict):
        keys = {**given, **now} if _is_map(token, path) else given
        both = {key: read_back(token, f"{path}.{key}", given.get(key), now.get(key)) for key in keys}
        return {key: item for key, item in both.items() if item is not None}
    if isinstance(given, list) and isinstance(now, dict):
        return given if {*map(str, given)} == now.keys() else [*now]
    if isinstance(given, list) and isinstance(now, list) and len(given) == len(now):
        return [read_back(token, path, before, after) for before, after in zip(given, now, strict=True)]
    is_gcp = token.startswith(GCP)
    is_same = google.is_same(token, path, now, given) if is_gcp else azure.is_same(path, now, given)
    return given if is_same else now


def _is_map(token: str, path: str) -> bool:
    """Return whether a property is a map of names that users choose, such as labels."""
    known = properties(token)
    *above, name = path.split(".")
    for key in above:
        hint = known[key].hint if key in known else None
        if word(hint) != "object":
            return False
        known = properties_of(hint)
    return name in known and word(known[name].hint) == "map"


def as_data_source(known: Mapping[str, Any], state: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return a state as a data source of Terraform does: a nested object is a list of one."""
    result: dict[str, Plain] = {}
    for key, item in state.items():
        hint = known[key].hint if key in known else None
        if isinstance(item, dict) and word(hint) == "object":
            result[f"{key}s"] = [as_data_source(properties_of(hint), item)]
        else:
            result[key] = item
    return result


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """A property that does not match the schema.

    Attributes:
        path: its path, such as `nodeConfig.taints[0].effect`.
        problem: unknown property, missing required property, or wrong type.
        expected: type in the schema: `string`, `bool`, `int`, `number`, `list`, `map`, `object`; empty for an
            unknown property.
    """

    path: str
    problem: Problem
    expected: str = ""


def schema_violations(token: str, inputs: Mapping[str, Plain]) -> list[SchemaViolation]:
    """Return the properties of a resource's inputs that do not match its type's schema. Unknown values match
    any type.

    Raises:
        LookupError: as for `provider_schema.properties`.
    """
    return list(_of_object(arguments(token), inputs, ""))


def _of_object(kind: type, value: Mapping[str, Plain], path: str) -> Iterator[SchemaViolation]:
    known = properties_of(kind)
    for name, property_ in known.items():
        if property_.required and value.get(name) is None:
            yield SchemaViolation(child_path(path, name), "missing", word(property_.hint))
    for name, item in value.items():
        if name in known:
            yield from _of(known[name].hint, item, child_path(path, name))
        elif not name.startswith("__"):
            yield SchemaViolation(child_path(path, name), "unknown")


def _of(hint: Any, value: Plain, path: str) -> Iterator[SchemaViolation]:
    if isinstance(value, Secret):
        value = value.value
    if value is None or value is UNKNOWN or hint is Any:
        return
    violations = [list(_of_one(choice, value, path)) for choice in alternatives(hint)]
    if all(violations):
        yield from min(
            violations, key=lambda choice: any(violation.problem == "type" for violation in choice)
        )


def _of_one(hint: Any, value: Plain, path: str) -> Iterator[SchemaViolation]:
    match word(hint):
        case "list" if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _of(item_of(hint), item, child_path(path, index))
        case "map" if isinstance(value, dict):
            for key, item in value.items():
                yield from _of(item_of(hint), item, child_path(path, key))
        case "object" if isinstance(value, dict):
            yield from _of_object(hint, value, path)
        case "any":
            return
        case name if not _is_scalar_of(name, value):
            yield SchemaViolation(path, "type", name)
        case _:
            return


def _is_scalar_of(name: str, value: Plain) -> bool:
    """Return whether a value matches a scalar type, including numbers and booleans as text, which providers
    parse."""
    match name:
        case "string":
            return isinstance(value, str | int | float)
        case "bool":
            return isinstance(value, bool) or value in ("true", "false")
        case "int":
            return _is_number(value) and float(cast("str", value)).is_integer()
        case "number":
            return _is_number(value)
        case _:
            return False


def _is_number(value: Plain) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True
