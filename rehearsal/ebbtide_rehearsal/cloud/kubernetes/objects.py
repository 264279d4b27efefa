"""Kubernetes objects as plain data."""

import base64
import binascii
import copy
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from ebbtide.recording.values import UNKNOWN

Object: TypeAlias = dict[str, Any]
"""An object, as its manifest has it; values that are not known yet are `UNKNOWN`."""

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands in an object: keys and indices."""

MISSING: Final = object()
"""In place of a value that is not there."""

_FROM_THE_SERVER: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)


def metadata(manifest: Mapping[str, Any]) -> Object:
    """An object's metadata; empty where it has none."""
    found: Object = manifest.get("metadata") or {}
    return found


def name_of(manifest: Mapping[str, Any]) -> Any:
    """What an object is called: a string, empty for no name, or unknown."""
    return metadata(manifest).get("name") or ""


def namespace_of(manifest: Mapping[str, Any]) -> Any:
    """The namespace that an object names: a string, empty for none, or unknown."""
    return metadata(manifest).get("namespace") or ""


def annotation(manifest: Mapping[str, Any], key: str) -> str:
    """An annotation; empty where there is none."""
    annotations: Object = metadata(manifest).get("annotations") or {}
    value = annotations.get(key)
    return value if isinstance(value, str) else ""


def identity(manifest: Mapping[str, Any]) -> str:
    """The id of a resource in the engine's state: `namespace/name`, or `name` for what has no namespace."""
    namespace = namespace_of(manifest)
    return f"{namespace}/{name_of(manifest)}" if namespace else str(name_of(manifest))


def parsed(identity: str) -> tuple[str, str]:
    """Namespace and name of an id; the namespace is empty for what has none."""
    namespace, _, name = identity.rpartition("/")
    return namespace, name


def with_metadata(manifest: Mapping[str, Any], **fields: Any) -> Object:
    """A copy with fields of the metadata set; those that are None are left out."""
    about = {**metadata(manifest), **fields}
    return {**manifest, "metadata": {key: value for key, value in about.items() if value is not None}}


def annotated(manifest: Mapping[str, Any], key: str, value: str) -> Object:
    """A copy with an annotation."""
    annotations: Object = metadata(manifest).get("annotations") or {}
    return with_metadata(manifest, annotations={**annotations, key: value})


def has_unknown(value: Any) -> bool:
    """Whether something in a value is not known yet."""
    match value:
        case dict():
            return any(map(has_unknown, cast("Object", value).values()))
        case list():
            return any(map(has_unknown, cast("list[Any]", value)))
        case _:
            return value is UNKNOWN


def at(value: Any, *path: str | int) -> Any:
    """What stands at a path; `MISSING` where there is nothing."""
    for step in path:
        match value, step:
            case dict(), str() if step in value:
                value = cast("Object", value)[step]
            case list(), int() if step < len(cast("list[Any]", value)):
                value = cast("list[Any]", value)[step]
            case _:
                return MISSING
    return value


def objects_at(value: Any, *path: str | int) -> list[Object]:
    """The objects of the list at a path; empty where there is none."""
    found = at(value, *path)
    return cast("list[Object]", found) if isinstance(found, list) else []


def words(text: str) -> tuple[str, ...]:
    """The words of a text, for tables of names."""
    return tuple(text.split())


def normalized(manifest: Mapping[str, Any]) -> Object:
    """An object in the form in which the API server gives it back, so that it can be compared with that: no
    `stringData`, no `status` of a definition, nothing in the metadata that only the server writes.

    Source: pulumi-kubernetes 4.32, provider/pkg/clients/unstructured.go, and `normalizeInputs`.
    """
    changed = copy.deepcopy(dict(manifest))
    about = metadata(changed)
    changed["metadata"] = {key: value for key, value in about.items() if key not in _FROM_THE_SERVER}
    match changed.get("apiVersion"), changed.get("kind"):
        case "v1", "Secret" if not has_unknown(changed):
            return _normalized_secret(changed)
        case "apiextensions.k8s.io/v1", "CustomResourceDefinition":
            return {key: value for key, value in changed.items() if key != "status"}
        case _:
            return changed


def _normalized_secret(manifest: Object) -> Object:
    given: Object = manifest.get("data") or {}
    written: Object = manifest.get("stringData") or {}
    data = {key: _reencoded(value) for key, value in given.items()}
    data |= {key: base64.b64encode(str(value).encode()).decode() for key, value in written.items()}
    rest = {key: value for key, value in manifest.items() if key not in ("data", "stringData")}
    return {**rest, "data": data} if data else rest


def _reencoded(value: Any) -> Any:
    """Base64 as the server writes it; what is none is left to the server to refuse."""
    try:
        return base64.b64encode(base64.b64decode(value)).decode()
    except (binascii.Error, TypeError, ValueError):
        return value
