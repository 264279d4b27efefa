"""JSON Schema of a stack's file, for editors."""

from typing import Any, Final, cast

from ebbtide.catalog import CloudKind, machine_names
from ebbtide.catalog.machine_offers import accelerator_types
from ebbtide.model import declaration_schema
from ebbtide.review.policy import policy_schema

_PATCH: Final = "Patch"


def stack_schema() -> dict[str, Any]:
    """Return the schema of `Pulumi.<stack>.yaml`, with the names of machines and accelerators.

    No field is required: fields may come from a base file or from the program. Other configuration is not
    described.
    """
    declaration, policy = declaration_schema(), policy_schema()
    definitions: dict[str, Any] = {**declaration.pop("$defs"), **policy.pop("$defs")}
    for keyword in ("if", "then"):
        declaration.pop(keyword)
    policy.pop("$schema")
    machines = [name for cloud in CloudKind for name in machine_names(cloud)]
    accelerators = list(dict.fromkeys(name for cloud in CloudKind for name in accelerator_types(cloud)))
    # A bare machine type must be in the catalog; newer types are declared with their resources.
    definitions["Pool"]["properties"]["machine"]["anyOf"][0]["enum"] = machines
    definitions["Accelerator"]["properties"]["type"]["enum"] = accelerators
    patches = {f"{name}{_PATCH}": _patch(definition) for name, definition in definitions.items()}
    cluster = {"if": {"required": ["extends"]}, "then": _patch(declaration), "else": declaration}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions | patches,
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": {"ebbtide:cluster": cluster, "ebbtide:policy": policy},
            }
        },
    }


def _patch(schema: Any) -> Any:
    """Return the schema of a change: every field may be omitted or null, and an item may mark a deletion."""
    if isinstance(schema, list):
        return [_patch(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    patch: dict[str, Any] = {}
    for keyword, value in cast("dict[str, Any]", schema).items():
        match keyword:
            case "required" | "minItems" | "discriminator":
                pass
            case "properties":
                fields = {name: {"anyOf": [_patch(field), {"type": "null"}]} for name, field in value.items()}
                patch["properties"] = fields | {"$patch": {"const": "delete"}}
            case "$ref":
                patch["$ref"] = f"{value}{_PATCH}"
            case "oneOf":
                patch["anyOf"] = _patch(value)
            case _:
                patch[keyword] = _patch(value)
    return patch
