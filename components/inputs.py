"""Inputs of a resource: of the right cloud, without omitted ones, with overrides applied last."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import pulumi

from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.providers.schema import (
    Property,
    alternatives,
    item_of,
    properties,
    properties_of,
    required_zeroes,
    word,
)


def input_errors(message: str, faults: Iterable[Fault]) -> pulumi.InputPropertiesError:
    """Return the error of invalid inputs, with every fault and its path."""
    return pulumi.InputPropertiesError(
        message,
        [
            {"property_path": fault.path, "reason": f"{fault.problem} {fault.consequence} {fault.fix}"}
            for fault in faults
        ],
    )


_Cloud = TypeVar("_Cloud", Gke, Aks)


def require_cloud(declaration: Cluster, kind: type[_Cloud]) -> _Cloud:
    """Return the declared cloud if it is of the required kind.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = declaration.cloud
    if isinstance(cloud, kind):
        return cloud
    required = kind.__name__.lower()
    raise pulumi.RunError(
        f"{declaration.name} is declared for {cloud.kind}, not for {required}. Declare "
        f"`cloud: {{kind: {required}}}`, or deploy it with ebbtide.components.{cloud.kind}."
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
    if not overrides:
        return dict(inputs)
    known = properties(token)
    return _completed(known, _merged(inputs, _renamed(known, overrides)), overrides)


def overriding(overrides: Mapping[tuple[str, object], Mapping[str, Any]]) -> pulumi.ResourceOptions:
    """Return options with which a component's resources have overrides, by type token and input `kind`."""

    def change(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        props = cast("Mapping[str, Any]", args.props)
        own = overrides.get((args.type_, props.get("kind")))
        if own is None:
            return None
        return pulumi.ResourceTransformationResult(overridden(args.type_, props, own), args.opts)

    return pulumi.ResourceOptions(transformations=[change] if overrides else [])


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


def _completed(
    known: Mapping[str, Property], values: Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return merged values, with zeroes for what the provider requires in an object of the overrides."""
    result = dict(values)
    for name, override in overrides.items():
        choice, python = alternatives(known[name].hint)[0], known[name].python
        if word(choice) == "object" and isinstance(override, Mapping):
            inner = properties_of(choice)
            zeroes = {inner[key].python: zero for key, zero in required_zeroes(inner).items()}
            own = _completed(inner, result[python], cast("Mapping[str, Any]", override))
            result[python] = {**zeroes, **own}
    return result


def _both(old: object, new: object) -> bool:
    return isinstance(old, Mapping) and isinstance(new, Mapping)
