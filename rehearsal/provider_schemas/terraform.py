"""Constraints of Google Cloud's resources, from the source of the Terraform provider that pulumi-gcp bridges.

A property whose change replaces a resource is `ForceNew` there; Pulumi documents this for few of them.
Pulumi's names follow from Terraform's: camel case, and a plural for a list.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ebbtide.declaration.providers.schema import arguments, properties_of
from rehearsal.provider_schemas import Row, inner_class
from rehearsal.provider_schemas.go_literals import Call, Literal, Source

_SERVICES: Final = "google-beta/services"
_MEMBER: Final = "google-beta/tpgiamresource/resource_iam_member.go:IamMemberBaseSchema"
_NODES: Final = f"{_SERVICES}/container/resource_container_node_pool.go"

_SCHEMAS: Final = """
artifactregistry/repository:Repository resource_artifact_registry_repository.go:ResourceArtifactRegistryRepository
compute/firewall:Firewall resource_compute_firewall.go:ResourceComputeFirewall
compute/futureReservation:FutureReservation resource_compute_future_reservation.go:ResourceComputeFutureReservation
compute/network:Network resource_compute_network.go:ResourceComputeNetwork
compute/router:Router resource_compute_router.go:ResourceComputeRouter
compute/routerNat:RouterNat resource_compute_router_nat.go:ResourceComputeRouterNat
compute/subnetwork:Subnetwork resource_compute_subnetwork.go:ResourceComputeSubnetwork
container/cluster:Cluster resource_container_cluster.go:ResourceContainerCluster
container/nodePool:NodePool resource_container_node_pool.go:ResourceContainerNodePool
container/nodePool:NodePool resource_container_node_pool.go:schemaNodePool
filestore/instance:Instance resource_filestore_instance.go:ResourceFilestoreInstance
serviceaccount/account:Account resource_google_service_account.go:ResourceGoogleServiceAccount
storage/bucket:Bucket resource_storage_bucket.go:ResourceStorageBucket
artifactregistry/repositoryIamMember:RepositoryIamMember iam_artifact_registry_repository.go:ArtifactRegistryRepositoryIamSchema
kms/cryptoKeyIAMMember:CryptoKeyIAMMember iam_kms_crypto_key.go:IamKmsCryptoKeySchema
projects/iAMMember:IAMMember iam_project.go:IamProjectSchema
serviceaccount/iAMMember:IAMMember iam_service_account.go:IamServiceAccountSchema
storage/bucketIAMMember:BucketIAMMember iam_storage_bucket.go:StorageBucketIamSchema
"""  # noqa: E501 - a table
"""File and name of each type's schema in the directory of its service."""
_OTHER_SERVICES: Final = {"projects": "resourcemanager", "serviceaccount": "resourcemanager"}


_PATTERNS: Final = {
    "ValidateGCEName": r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$",
    "ValidateRFC1035Name(2, 63)": r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])$",
    "ValidateRFC1035Name(6, 30)": r"^[a-z]([-a-z0-9]{4,28}[a-z0-9])$",
    "ValidateIpCidrRange": r"^[0-9a-fA-F.:]+(/\d{1,3})?$",
    "ValidateRFC3339Date": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)$",
    "ValidateRFC3339Time": r"^([01]\d|2[0-3]):[0-5]\d$",
    "validateDuration": r"^[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+$",
    "validateIAMMember": r"^(allUsers|allAuthenticatedUsers|(deleted:)?[A-Za-z]+:.+)$",
}
"""The texts that the provider's validators accept, by their name and arguments."""


def schemas() -> Iterator[tuple[str, str, str]]:
    """Yield each type with the file and the name of one of its schemas."""
    for line in _SCHEMAS.split("\n")[1:-1]:
        type_, place = line.split()
        service = type_.partition("/")[0]
        member = [_MEMBER] if place.startswith("iam_") else []
        for where in (f"{_SERVICES}/{_OTHER_SERVICES.get(service, service)}/{place}", *member):
            file, _, name = where.partition(":")
            yield f"gcp:{type_}", file, name


class Provider:
    """The source of terraform-provider-google-beta in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, dict[str, dict[str, Any]]] = {}
        released = re.search(
            r"^## (\d+\.\d+\.\d+) \(\w+ \d", (directory / "CHANGELOG.md").read_text(), re.MULTILINE
        )
        if released is None:
            raise LookupError("CHANGELOG.md names no release.")
        self._source = f"terraform-provider-google-beta {released[1]}"

    def rows(self) -> Iterator[Row]:
        """Yield the constraints of all types."""
        for token, file, name in schemas():
            path = self._directory / file
            yield from self._resource(token, path, self._schemas(path)[name], arguments(token), "")

    def _schemas(self, file: Path) -> dict[str, dict[str, Any]]:
        """Return the schemas that a file can refer to in its package, by name."""
        if file not in self._read:
            beside = (file, file.with_name("node_config.go"), self._directory / _NODES)
            schemas: dict[str, dict[str, Any]] = {}
            for other in beside:
                if other.exists() and other.parent == file.parent:
                    schemas = Source(other.read_text()).schemas() | schemas
            self._read[file] = schemas
        return self._read[file]

    def _resource(
        self, token: str, file: Path, schema: Mapping[str, Any], known: type, above: str
    ) -> Iterator[Row]:
        properties = properties_of(known)
        for terraform, value in schema.items():
            names = [name for name in _names(terraform) if name in properties]
            fields = self._fields(file, value)
            if not names or fields is None:
                continue  # an output, or not in Pulumi
            path = f"{above}.{names[0]}" if above else names[0]
            source = f"{self._source} {file.name}"
            for constraint, text in _constraints(fields):
                yield Row(token, path, constraint, text, source)
            inner, below = inner_class(properties[names[0]].hint), self._below(file, fields.get("Elem"))
            if inner is not None and below is not None:
                yield from self._resource(token, file, below, inner, path)

    def _fields(self, file: Path, value: Any) -> dict[str, Any] | None:
        if isinstance(value, Literal):
            return value.keyed
        if not isinstance(value, Call):
            return None
        if value.name == "tpgresource.DeletionPolicySchemaEntry":
            return {"Optional": True, "Default": value.arguments[0] if value.arguments else ""}
        schema = self._schemas(file).get(value.name, {}).get("")
        return schema.keyed if isinstance(schema, Literal) else None

    def _below(self, file: Path, element: Any) -> Mapping[str, Any] | None:
        """Return the schema of the objects in a property; None without objects."""
        if isinstance(element, Call):
            return self._schemas(file).get(element.name)
        schema = element.keyed.get("Schema") if isinstance(element, Literal) else None
        if isinstance(schema, Call):
            return self._schemas(file).get(schema.name)
        return schema.keyed if isinstance(schema, Literal) else None


def _names(terraform: str) -> Iterator[str]:
    """Yield possible names of a property in Pulumi."""
    first, *others = terraform.split("_")
    camel = first + "".join(other.capitalize() for other in others)
    yield camel
    yield f"{camel}s"
    yield f"{camel}es"
    yield f"{camel.removesuffix('y')}ies"


def _constraints(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if fields.get("ForceNew") is True:
        yield "replace", "within" if str(fields.get("Type")) == "TypeMap" else ""
    if fields.get("Optional") is True and fields.get("Computed") is True:
        yield "computed", ""
    default = fields.get("Default")
    if isinstance(default, str | int | float):
        yield "default", json.dumps(default)
    if isinstance(fields.get("DiffSuppressFunc"), Call) and fields["DiffSuppressFunc"].name != "func":
        yield "same", str(fields["DiffSuppressFunc"])
    validate = fields.get("ValidateFunc")
    if isinstance(validate, Call) and validate.name != "func":
        yield from _validation(validate)


def _validation(validate: Call) -> Iterator[tuple[str, str]]:
    name = validate.name.rpartition(".")[2]
    given: list[Any] = list(validate.arguments or ())
    match name:
        case "StringInSlice" | "ValidateEnum" if isinstance(given[0], Literal):
            if all(isinstance(item, str) for item in given[0].items):
                yield "enum", "|".join(item for item in given[0].items if item)
        case "IntAtLeast":
            yield "minimum", f"{given[0]:g}"
        case "IntBetween" | "FloatBetween":
            yield "minimum", f"{given[0]:g}"
            yield "maximum", f"{given[1]:g}"
        case "StringLenBetween":
            yield "longest", f"{given[1]:g}"
        case "ValidateRegexp" if isinstance(given[0], str):
            yield "pattern", given[0]
        case _ if str(validate) in _PATTERNS:
            yield "pattern", _PATTERNS[str(validate)]
        case _:
            pass  # the provider's own to check
