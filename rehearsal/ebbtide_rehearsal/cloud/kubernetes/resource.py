"""A resource's inputs and state, as the engine keeps them, and what a change of inputs means.

The state is the object as it was last seen, and beside it the inputs that it was made from, the version of
the API that it was first made with and the manager of its fields, under the names that Pulumi's provider has
for them (pulumi-kubernetes 4.32, provider/pkg/provider/provider.go, `checkpointObject`).
"""

import secrets
from collections.abc import Mapping
from typing import Any, Final, cast

from ebbtide.recording.values import UNKNOWN, Plain, Secret
from ebbtide_rehearsal.cloud.kubernetes.difference import differences, pruned
from ebbtide_rehearsal.cloud.kubernetes.objects import (
    Object,
    annotated,
    annotation,
    name_of,
    namespace_of,
    with_metadata,
)
from ebbtide_rehearsal.cloud.kubernetes.replacing import needs_another
from ebbtide_rehearsal.cloud.provider import Change, Properties

AUTONAMED: Final = "pulumi.com/autonamed"
MANAGER: Final = "pulumi.com/patchFieldManager"

_INPUTS: Final = "__inputs"
_VERSION: Final = "__initialApiVersion"
_MANAGER: Final = "__fieldManager"

_WRITTEN_OTHERWISE: Final = {
    f"x_kubernetes_{name}": f"x-kubernetes-{name.replace('_', '-')}"
    for name in (
        "embedded_resource",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "map_type",
        "preserve_unknown_fields",
        "validations",
    )
}
"""Fields of a kind's schema, as the SDK has them and as Kubernetes does."""


def as_manifest(properties: Properties) -> Object:
    """Properties of a resource as an object's manifest."""
    return cast("Object", _renamed(dict(properties), _WRITTEN_OTHERWISE))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case dict():
            items = cast("Object", value).items()
            return {names.get(key, key): _renamed(item, names) for key, item in items}
        case list():
            return [_renamed(item, names) for item in cast("list[Any]", value)]
        case _:
            return value


def state_of(live: Object, inputs: Object, manager: str) -> dict[str, Plain]:
    """The state of a resource; data of a Secret are secret, wherever they come from."""
    back = {there: here for here, there in _WRITTEN_OTHERWISE.items()}
    about = {_INPUTS: _hidden(inputs), _VERSION: inputs.get("apiVersion"), _MANAGER: manager}
    return cast("dict[str, Plain]", _renamed({**_hidden(live), **about}, back))


def _hidden(manifest: Object) -> Object:
    if manifest.get("kind") != "Secret" or manifest.get("apiVersion") != "v1":
        return manifest
    return {key: Secret(item) if key in ("data", "stringData") else item for key, item in manifest.items()}


def known_inputs(state: Properties) -> Object:
    """The inputs that a state was made from; empty for one that was only read."""
    found = as_manifest(state).get(_INPUTS)
    return cast("Object", found) if isinstance(found, dict) else {}


def known_object(state: Properties) -> Object:
    """The object as it was last seen."""
    return {key: value for key, value in as_manifest(state).items() if not key.startswith("__")}


def manager_of(inputs: Object, state: Properties | None = None) -> str:
    """Who owns the fields of a resource: the one that it asks for, the one that it has, or a new one."""
    known = (state or {}).get(_MANAGER)
    return annotation(inputs, MANAGER) or (
        str(known) if known else f"pulumi-kubernetes-{secrets.token_hex(4)}"
    )


def named(inputs: Object, old: Object, resource: str) -> Object:
    """Inputs with a name: their own, that which the object was given before, or a new one after the
    resource's."""
    if name_of(inputs):
        return inputs
    if annotation(old, AUTONAMED) == "true":
        return annotated(with_metadata(inputs, name=name_of(old)), AUTONAMED, "true")
    name = f"{resource}-{secrets.token_hex(4)}"
    return annotated(with_metadata(inputs, name=name), AUTONAMED, "true")


def change(live: Object, old: Object, new: Object, fixed: tuple[str, ...]) -> Change:
    """What new inputs mean for an object.

    Args:
        live: as it was last seen.
        old: the inputs that made it so.
        new: the new ones.
        fixed: paths of what cannot be changed of it.
    """
    before = cast("Object", pruned(live, old))
    before = with_metadata(before, name=name_of(live))
    found = list(differences(before, new))
    changed = list(dict.fromkeys(str(path[0]) for path, _ in found))
    replaces = [str(path[0]) for path, value in found if needs_another(path, value, fixed)]
    same_place = name_of(new) == name_of(live) and namespace_of(new) == namespace_of(live)
    fixed_name = same_place and name_of(new) is not UNKNOWN and annotation(new, AUTONAMED) != "true"
    return Change(changed, list(dict.fromkeys(replaces)), bool(replaces) and fixed_name)
