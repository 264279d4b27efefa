"""JSON Schema of a stack's file, for editors."""

from typing import Any

from ebbtide.analysis.policy.check import policy_schema
from ebbtide.declaration.catalog import CloudKind, machine_names
from ebbtide.declaration.catalog.machine_offers import accelerator_types
from ebbtide.declaration.model.declare import whole_schema, with_changes


def stack_schema() -> dict[str, Any]:
    """Return the schema of `Pulumi.<stack>.yaml`, with the names of machines and accelerators.

    No field is required: fields may come from a base file or from the program. Other configuration is not
    described.
    """
    whole, policy = whole_schema(), policy_schema()
    whole.pop("required")
    machines = [name for cloud in CloudKind for name in machine_names(cloud)]
    accelerators = list(dict.fromkeys(name for cloud in CloudKind for name in accelerator_types(cloud)))
    # A bare machine type must be in the catalog; newer types are declared with their resources.
    whole["$defs"]["Pool"]["properties"]["machine"]["anyOf"][0]["enum"] = machines
    whole["$defs"]["Accelerator"]["properties"]["type"]["enum"] = accelerators
    declaration = with_changes(whole)
    definitions = declaration.pop("$defs") | policy.pop("$defs")
    policy.pop("$schema")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions,
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": {"ebbtide:cluster": declaration, "ebbtide:policy": policy},
            }
        },
    }
