"""The Pulumi package schema of the declaration, for programs in other languages than Python.

It is generated from the declaration's JSON Schema: each definition becomes a type, each list of values an
enum. Limits, patterns and rules have no equivalent in it; the provider checks them. Source: Pulumi package
schema (pulumi 3.259, pkg/codegen/schema/pulumi.json).
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from ebbtide import __version__
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import whole_schema
from ebbtide.declaration.model.expiry import OUTPUT as EXPIRES
from ebbtide.declaration.model.waiting import WAITING

Schema = dict[str, Any]

PACKAGE: Final = "ebbtide"
NAMESPACE: Final = "pulumi"
"""Prefix of the names of generated SDKs, as of those without a namespace: only Pulumi can publish packages
with these names. Without it, Pulumi uses the owner of the repository if the package is added by its URL.
"""
CLUSTER: Final = "ebbtide:index:Cluster"
NODE_POOL: Final = "ebbtide:index:NodePool"

_PROFILE: Final = "Placement profile of the pools, which `ebbtide job --profile` reads."
_OUTPUTS: Final = {
    "clusterName": "Name of the cluster in its cloud.",
    "kubeconfig": "Kubeconfig without credentials.",
    "placementProfile": _PROFILE,
    EXPIRES: "Time of expiry of an ephemeral cluster.",
    "aksClusterInputs": "AKS: fingerprint of the cluster's inputs. Export it as the stack's output "
    "`aksClusterInputs`: without it, the next preview after a refresh shows work pools as removed.",
}
_NUMBERS: Final = {1: "One", 2: "Two"}
"""Names of enum values that are no words."""


def package_schema() -> Schema:
    """Return the package schema: a cluster, a node pool for an existing cluster, and their types."""
    declaration = whole_schema()
    del declaration["properties"]["extends"]  # a file, which the provider of another program cannot find
    return _Package(declaration).schema()


class _Package:
    """A conversion of the declaration's JSON Schema to a Pulumi package."""

    def __init__(self, declaration: Schema) -> None:
        self._declaration = declaration
        self._definitions: Schema = declaration["$defs"]
        self._types: Schema = {}
        self._variants: dict[str, str] = dict(self._discriminated(declaration))

    def schema(self) -> Schema:
        """Return the package schema."""
        cluster = self._object("", self._declaration)
        fields = {"owner": cluster["properties"]["owner"], "cloud": cluster["properties"]["cloud"]}
        pool = {"pool": {"$ref": _type("Pool"), "description": "The pool."}}
        for name, definition in self._definitions.items():
            self._types[_token(name)] = (
                self._enum(definition["enum"], definition)
                if "enum" in definition
                else self._object(name, definition)
            )
        outputs: Schema = {name: {"type": "string", "description": text} for name, text in _OUTPUTS.items()}
        outputs["kubeconfig"]["secret"] = True
        return {
            "name": PACKAGE,
            "namespace": NAMESPACE,
            "displayName": "Ebbtide",
            "version": __version__,
            "description": "ML clusters on GKE and AKS, declared once.",
            "license": "Apache-2.0",
            "language": {
                name: {"respectSchemaVersion": True} for name in ("csharp", "go", "nodejs", "python")
            },
            "types": dict(sorted(self._types.items())),
            "resources": {
                CLUSTER: {
                    "isComponent": True,
                    "description": (Cluster.__doc__ or "").strip(),
                    "inputProperties": cluster["properties"],
                    "requiredInputs": cluster["required"],
                    "properties": outputs,
                    "required": ["clusterName", "kubeconfig", "placementProfile"],
                },
                NODE_POOL: {
                    "isComponent": True,
                    "description": "A node pool of an existing cluster, which `cloud.existing` names.",
                    "inputProperties": {**fields, **pool},
                    "requiredInputs": ["owner", "cloud", "pool"],
                    "properties": {
                        "poolName": {"type": "string", "description": "Name of the pool in its cloud."},
                        "placementProfile": outputs["placementProfile"],
                    },
                    "required": ["poolName", "placementProfile"],
                },
            },
        }

    def _discriminated(self, schema: Any) -> Iterator[tuple[str, str]]:
        """Yield the definitions that a property distinguishes from others, each with that property."""
        match schema:
            case {"discriminator": {"mapping": mapping, "propertyName": name}}:
                yield from ((reference, name) for reference in mapping.values())
            case dict():
                for value in schema.values():  # pyright: ignore[reportUnknownVariableType]
                    yield from self._discriminated(value)
            case list():
                for value in schema:  # pyright: ignore[reportUnknownVariableType]
                    yield from self._discriminated(value)
            case _:
                pass

    def _object(self, name: str, definition: Schema) -> Schema:
        required = set(definition.get("required", ()))
        if kind := self._variants.get(f"#/$defs/{name}"):
            required.add(kind)
        return {
            "type": "object",
            "description": _text(definition),
            "properties": {
                key: self._property(f"{name}{key[:1].upper()}{key[1:]}", field)
                | {"description": _meaning(f"{name}.{key}", field)}
                for key, field in definition["properties"].items()
            },
            "required": [key for key in definition["properties"] if key in required],
        }

    def _property(self, name: str, field: Schema) -> Schema:  # noqa: PLR0911 - a form of schema each
        """Return the type of a field.

        Args:
            name: name of its type, if it needs one of its own.
            field: its JSON Schema.

        Raises:
            ValueError: a Pulumi package has no such type.
        """
        match field:
            case {"$ref": str(reference)}:
                return {"$ref": _type(reference.rpartition("/")[2])}
            case {"enum": [*values]}:
                self._types[_token(name)] = self._enum(values, field)
                return {"$ref": _type(name)}
            case {"anyOf": [*choices]}:
                return {"oneOf": [part for choice in choices for part in self._choices(name, choice)]}
            case {"oneOf": [*_], "discriminator": {"propertyName": key, "mapping": mapping}}:
                named = {value: _type(path.rpartition("/")[2]) for value, path in mapping.items()}
                return {
                    "oneOf": self._choices(name, field),
                    "discriminator": {"propertyName": key, "mapping": named},
                }
            case {"type": "array", "items": items}:
                return {"type": "array", "items": self._property(name, items)}
            case {"type": "object", "additionalProperties": True}:
                return {"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}
            case {"type": "object", "additionalProperties": values}:
                return {"type": "object", "additionalProperties": self._property(name, values)}
            case {"type": "string", "const": value}:
                return {"type": "string", "const": value}
            case {"type": "string" | "integer" | "number" | "boolean" as scalar}:
                return {"type": scalar}
            case _:
                raise ValueError(f"{name} has no type in a Pulumi package: {field}")

    def _choices(self, name: str, choice: Schema) -> list[Schema]:
        if "oneOf" in choice:
            return [self._property(name, part) for part in choice["oneOf"]]
        # An enum would be the only choice in Go (pulumi 3.259, pkg/codegen/go/gen.go).
        return [{"type": "string"} if "enum" in choice else self._property(name, choice)]

    def _enum(self, values: list[Any], described: Schema) -> Schema:
        scalar = "integer" if isinstance(values[0], int) else "string"
        return {
            "type": scalar,
            "description": _text(described),
            "enum": [
                {"value": value, **({"name": _NUMBERS[value]} if isinstance(value, int) else {})}
                for value in values
            ],
        }


def _token(name: str) -> str:
    return f"{PACKAGE}:index:{name}"


def _type(name: str) -> str:
    return f"#/types/{_token(name)}"


def _text(described: Schema) -> str:
    return re.sub(r"\s+", " ", described.get("description", "")).strip()


def _meaning(path: str, field: Schema) -> str:
    """Return a field's description, with the names among its values, its default, and whether it may wait for
    another resource.
    """
    text, default = _text(field), field.get("default")
    parts = [text] if text else []
    names = [f"`{name}`" for choice in field.get("anyOf", ()) for name in choice.get("enum", ())]
    if names:
        parts.append(f"Names: {', '.join(names)}.")
    if (
        isinstance(default, bool | int | str)
        and default != ""
        and "const" not in field
        and "Default: " not in text
    ):
        parts.append(f"Default: `{str(default).lower() if isinstance(default, bool) else default}`.")
    if any(path == row.field for row in WAITING):
        parts.append("It may be an output of a resource that does not exist yet.")
    return " ".join(parts)
