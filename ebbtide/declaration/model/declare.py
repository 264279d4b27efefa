"""Parse and validate a declaration."""

from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool, resolve
from ebbtide.declaration.model.rules.overrides import unchecked
from ebbtide.declaration.model.rules.registry import cluster_faults, pool_faults
from ebbtide.declaration.model.rules.rule import PoolIn, Severity
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import position

_PATCH: Final = "Patch"
_EXTENDS: Final = (
    "File of a stack whose declaration this one changes: mappings are merged, null removes a field; pools, "
    "queues and teams are merged by name, and {name: t4-spot, $patch: delete} removes one; other lists are "
    "replaced. Its policy and prices hold too."
)


def declare(written: object, *, default_name: str | None = None) -> Cluster:
    """Parse and validate a declaration.

    Args:
        written: the object under `ebbtide:cluster`, as parsed from YAML or JSON.
        default_name: name of the cluster if the declaration has none.

    Returns:
        The valid declaration, with resolved pools.

    Raises:
        DeclarationError: the declaration is invalid; it has every fault.
    """
    whole = _named(written, default_name)
    parsed = _read(whole)
    if isinstance(parsed, Cluster):
        return parsed.resolved()
    in_order = sorted(parsed, key=lambda fault: position(fault.path, whole))
    raise DeclarationError(in_order, declared=written)


def _named(written: object, default_name: str | None) -> object:
    if default_name and isinstance(written, Mapping) and "name" not in written:
        return {"name": default_name, **cast("Mapping[object, object]", written)}
    return cast("object", written)


def _read(written: object) -> Cluster | list[Fault]:
    """Parse a declaration; return all of its faults if there are any."""
    try:
        cluster, error = Cluster.model_validate(written), None
    except ValidationError as invalid:
        cluster, error = None, invalid
    faults = _shape_faults(written, error) if error or _has_null(written) else []
    if cluster is None or faults:
        return faults
    return list(cluster_faults(cluster, Severity.REFUSED)) or cluster


def _has_null(written: object) -> bool:
    match written:
        case Mapping():
            return any(map(_has_null, cast("Mapping[object, object]", written).values()))
        case list():
            return any(map(_has_null, cast("list[object]", written)))
        case _:
            return written is None


def _shape_faults(written: object, error: ValidationError | None) -> list[Fault]:
    """Return the faults of a declaration's shape, and with any, the rules' faults in the part without them,
    except those that may follow from one."""
    # An update of a valid declaration does without these modules.
    from ebbtide.declaration.model.shape.findings import (  # noqa: PLC0415
        findings,
        may_depend_on,
        null_findings,
        validate_partially,
    )

    found = tuple(null_findings(Cluster, written))
    empty = {finding.fault.path for finding in found}
    others = findings(Cluster, error, written) if error else ()
    found = (*found, *(finding for finding in others if finding.fault.path not in empty))
    faults = [finding.fault for finding in found]
    cluster = validate_partially(Cluster, written, found) if found else None
    if cluster is None:
        return faults
    broken = {path for finding in found for path in (finding.fault.path, finding.meant) if path}
    own = bool(cluster.queues)
    return faults + [
        fault
        for fault in cluster_faults(cluster, Severity.REFUSED)
        if not any(may_depend_on(fault.path, path, has_queues=own) for path in broken)
    ]


def check_pool(pool: Pool, site: Site) -> ResolvedPool:
    """Validate and resolve a pool without a whole declaration.

    Raises:
        DeclarationError: the pool is invalid; it has every fault.
    """
    resolved = resolve(pool, site)
    faults = list(pool_faults(PoolIn(pool, resolved, ""), Severity.REFUSED))
    if faults:
        raise DeclarationError(faults, subject=f"The pool {pool.name}")
    return resolved


def advice(cluster: Cluster) -> tuple[Fault, ...]:
    """Return the warnings of a valid declaration."""
    return (*cluster_faults(cluster, Severity.WARNED), *unchecked(cluster))


class _WithoutNull(GenerateJsonSchema):
    """JSON Schema in which an optional field may be omitted, but not null, as `declare` requires."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def declaration_schema() -> dict[str, Any]:
    """Return the JSON Schema of the object under `ebbtide:cluster`, for editors."""
    return with_changes(whole_schema())


def whole_schema() -> dict[str, Any]:
    """Return the JSON Schema of a declaration that extends nothing. The name may be missing."""
    schema = Cluster.model_json_schema(by_alias=True, mode="validation", schema_generator=_WithoutNull)
    schema["required"].remove("name")
    schema["properties"] = {"extends": {"type": "string", "description": _EXTENDS}, **schema["properties"]}
    for name, cloud in (("Gke", CloudKind.GKE), ("Aks", CloudKind.AKS)):
        listed: dict[str, Any] = {"enum": Locations(cloud).names()}
        displayed = {"pattern": "[A-Z ]"}  # as Azure displays it
        location = {"anyOf": [listed, displayed]} if cloud is CloudKind.AKS else listed
        known = {"properties": {"location": location}}
        schema["$defs"][name] |= {"if": {"not": {"required": ["regions"]}}, "then": known}
    return schema


def with_changes(whole: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also accepts, with `extends`, the changes to another declaration.

    Args:
        whole: schema of a declaration.
    """
    definitions: dict[str, Any] = whole["$defs"]
    patches = {f"{name}{_PATCH}": _patch(definition) for name, definition in definitions.items()}
    own = {keyword: value for keyword, value in whole.items() if keyword != "$defs"}
    return {"$defs": definitions | patches, "if": {"required": ["extends"]}, "then": _patch(own), "else": own}


def _patch(schema: Any) -> Any:
    """Return the schema of a change: every field may be omitted or null, and an item may mark a deletion."""
    if isinstance(schema, list):
        return [_patch(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    patch: dict[str, Any] = {}
    for keyword, value in cast("dict[str, Any]", schema).items():
        match keyword:
            case "required" | "minItems" | "discriminator" | "if" | "then":
                pass  # what a change omits may be in the other declaration
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
