"""Inputs of a resource: without omitted ones, and with overrides, which are applied last."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from ebbtide.declaration.providers.schema import (
    Property,
    alternatives,
    item_of,
    properties,
    properties_of,
    word,
)

_Inputs = TypeVar("_Inputs", bound=Mapping[str, object])


def without_none(inputs: _Inputs) -> _Inputs:
    """Return the inputs that have a value: a diff shows an omitted one more clearly than null."""
    return cast("_Inputs", {key: value for key, value in inputs.items() if value is not None})


def overridden(token: str, inputs: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's inputs with overrides merged in: mappings are merged, anything else is replaced.

    Args:
        token: type of the resource.
        inputs: under the SDK's names.
        overrides: under the provider's names, as declared.
    """
    return _merged(inputs, _renamed(properties(token), overrides)) if overrides else dict(inputs)


def overridden_item(
    token: str, name: str, inputs: Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the same for an item of a list in the resource's inputs, such as an inline pool of an AKS
    cluster."""
    if not overrides:
        return dict(inputs)
    return _merged(inputs, _renamed(properties_of(item_of(properties(token)[name].hint)), overrides))


def _renamed(known: Mapping[str, Property], values: Mapping[str, Any]) -> dict[str, Any]:
    """Rename values to the SDK's names, which it converts back; keys of maps are kept."""
    return {known[name].python: _value(known[name].hint, value) for name, value in values.items()}


def _value(hint: Any, value: Any) -> Any:
    for choice in alternatives(hint):
        if word(choice) == "object" and isinstance(value, Mapping):
            return _renamed(properties_of(choice), cast("Mapping[str, Any]", value))
        if word(choice) == "list" and isinstance(value, list | tuple):
            return [_value(item_of(choice), item) for item in cast("list[Any]", value)]
    return value


def _merged(inputs: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(inputs)
    for name, value in overrides.items():
        old = merged.get(name)
        merged[name] = _merged(cast("Mapping[str, Any]", old), value) if _both(old, value) else value
    return merged


def _both(old: object, new: object) -> bool:
    return isinstance(old, Mapping) and isinstance(new, Mapping)
