"""Pulumi's bridge to Terraform: complete and validate inputs, compare them, and read them back."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from ebbtide.analysis.providers import google
from ebbtide.analysis.providers.property_path import plain_path, with_defaults
from ebbtide.analysis.recording.values import Plain
from ebbtide_rehearsal.cloud import fake_provider
from ebbtide_rehearsal.cloud.gcp.request import ResourceKind
from ebbtide_rehearsal.cloud.provider import Call, DiffResult, Properties

_RANDOM_DIGITS: Final = 7


def completed(kind: ResourceKind, call: Call, old: Properties, new: Properties) -> dict[str, Plain]:
    """Return inputs with the provider's defaults and a name: by default the existing one, or a new one from
    the logical name and random digits.
    """
    inputs = with_defaults(new, kind.constraints.defaults)
    if kind.autonamed and inputs.get(kind.autonamed) is None:
        digits = secrets.token_hex(_RANDOM_DIGITS)[:_RANDOM_DIGITS]
        inputs[kind.autonamed] = old.get(kind.autonamed) or f"{call.name}-{digits}"
    return inputs


def change(kind: ResourceKind, old: Properties, state: Properties, new: Properties) -> DiffResult:
    """Return the effect of changed inputs on a resource.

    Args:
        kind: type of the resource.
        state: its state, as known to the engine.
    """
    before = {
        **old,
        **{name: state[name] for name in kind.constraints.computed if _is_scalar(state.get(name))},
    }
    return fake_provider.change(
        before,
        new,
        is_same=lambda path, before, after: (
            google.is_same(kind.type, plain_path(path), before, after)
            or google.is_kept(kind.type, plain_path(path), after)
        ),
        needs_new=lambda path, before, after: google.needs_new(kind.type, plain_path(path), before, after),
        keeps_name=google.keeps_name(old, new),
    )


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, dict)


def read_back(kind: ResourceKind, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Plain]:
    """Return the inputs of a resource as read, with the cloud's values where they differ."""
    return _objects_back(kind, dict(inputs), dict(state), "")


def _objects_back(
    kind: ResourceKind, inputs: dict[str, Plain], state: dict[str, Plain], above: str
) -> dict[str, Plain]:
    keys = {*inputs, *state} if above in kind.maps else {*inputs}
    result: dict[str, Plain] = {}
    for key in sorted(keys):
        path = f"{above}.{key}" if above else key
        result[key] = _back(kind, inputs.get(key), state.get(key), path)
    return {key: item for key, item in result.items() if item is not None}


def _back(kind: ResourceKind, inputs: Plain, state: Plain, path: str) -> Plain:
    if isinstance(inputs, dict) and isinstance(state, dict):
        return _objects_back(kind, inputs, state, path)
    if isinstance(inputs, list) and isinstance(state, list) and len(inputs) == len(state):
        return [_back(kind, before, after, path) for before, after in zip(inputs, state, strict=True)]
    return inputs if google.is_same(kind.type, path, state, inputs) else state
