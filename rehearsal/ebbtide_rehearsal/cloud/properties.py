"""Ids, inputs and states of the fake clouds' resources, by the templates of previews and the schemas."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ebbtide.analysis.changes import azure, google
from ebbtide.analysis.changes.azure import API_VERSION, RANDOMLY_NAMED
from ebbtide.analysis.changes.property_path import replaced, with_defaults
from ebbtide.analysis.recording import assumed_azure, assumed_gcp
from ebbtide.analysis.recording.values import UNKNOWN, Plain
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.declaration.providers.schema import properties, properties_of, word
from ebbtide.values.paths import child_path
from ebbtide_rehearsal.cloud.ids import BUCKET, GCP, NODE_POOL
from ebbtide_rehearsal.cloud.provider import Properties
from ebbtide_rehearsal.cloud.schema import schema_violations

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


def as_answered(token: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's state as its cloud answers it: with the values that it fills in."""
    result = with_defaults(state, constraints_of(token).fills)
    for (type_, path), change in _ANSWERS.items():
        result = replaced(result, path, change) if type_ == token else result
    return result


def names(token: str) -> tuple[str, ...]:
    """Return the inputs in a type's id, the resource's name last."""
    names = re.findall(r"\{(\w+)", TEMPLATES[token].id)
    return tuple(name for name in names if name != "subscriptionId")


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
