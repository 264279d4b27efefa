"""Overrides of the resources beside cluster and pools: `cloud.resources`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.overridable import BILLING, Overridable, Relied
from ebbtide.declaration.model.rules.overrides import SOURCE, override_faults
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule
from ebbtide.values.cloud_kind import CloudKind, by_cloud

_NAMED: Final = {"name": "name", "project": "cloud.project", "region": "cloud.location"}
_BY_ROLES: Final = "Members' access, which is granted by roles, would be another one."
_ACCOUNT: Final = "azure-native:storage:StorageAccount"
_NO_BUCKET: Final = "No team has a bucket."
_NO_REGISTRY: Final = "No team has a registry."


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of resources.

    Attributes:
        of: the resource.
        is_created: whether the declaration has one.
        reason: why there is none otherwise.
    """

    of: Overridable
    is_created: Callable[[Cluster], bool]
    reason: str


def _has_own_network(cluster: Cluster) -> bool:
    cloud = cluster.cloud
    if cloud.existing:
        return False
    match cloud:
        case Gke():
            return not cloud.network.vpc
        case Aks():
            return not (cloud.network.subnet or cloud.network.managed)


def has_bucket(cluster: Cluster) -> bool:
    """Return whether the stack creates a bucket."""
    pipelines = cluster.addons.installed_pipelines
    return any(team.bucket for team in cluster.teams) or bool(pipelines and pipelines.artifacts == "bucket")


def has_registry(cluster: Cluster) -> bool:
    """Return whether the stack creates a registry."""
    return any(team.registry for team in cluster.teams)


def _labels(name: str) -> dict[str, str]:
    return {f"{name}.{label}": "owner" for label in BILLING}


_AZURE: Final = {"resourceGroupName": "cloud.resourceGroup", "location": "cloud.location"} | _labels("tags")


def _of_network(
    token: str, derived: Mapping[str, str], *paths: str, relied_on: Mapping[str, Relied] | None = None
) -> _Kind:
    """Return a part of the stack's own network; its inputs at the paths are derived from `cloud.network`."""
    of = Overridable(token, {**derived, **dict.fromkeys(paths, "cloud.network")}, relied_on or {})
    return _Kind(of, _has_own_network, "The stack creates no network of its own.")


def _of_bucket(
    token: str, derived: Mapping[str, str], relied_on: Mapping[str, Relied] | None = None
) -> _Kind:
    """Return a part of Azure's storage for a team's bucket."""
    of = Overridable(token, {"resourceGroupName": "cloud.resourceGroup", **derived}, relied_on or {})
    return _Kind(of, lambda cluster: any(team.bucket for team in cluster.teams), _NO_BUCKET)


KINDS: Final[Mapping[CloudKind, Mapping[str, _Kind]]] = by_cloud(
    gke={
        "network": _of_network("gcp:compute/network:Network", _NAMED, "autoCreateSubnetworks"),
        "subnetwork": _of_network(
            "gcp:compute/subnetwork:Subnetwork",
            _NAMED,
            *("network", "ipCidrRange", "secondaryIpRanges"),
            relied_on={
                "privateIpGoogleAccess": Relied(
                    "Nodes without public addresses would not reach Google's APIs.", value=True
                )
            },
        ),
        "router": _of_network("gcp:compute/router:Router", _NAMED, "network"),
        "router_nat": _of_network(
            "gcp:compute/routerNat:RouterNat",
            _NAMED,
            *("router", "subnetworks", "sourceSubnetworkIpRangesToNat"),
        ),
        "bucket": _Kind(
            Overridable(
                "gcp:storage/bucket:Bucket",
                {
                    "name": "name",
                    "project": "cloud.project",
                    "location": "cloud.location",
                    "forceDestroy": "teams[].bucket.keep",
                    "encryption.defaultKmsKeyName": "cloud.keys.buckets",
                    **_labels("labels"),
                },
                {"uniformBucketLevelAccess": Relied(_BY_ROLES, value=True)},
            ),
            has_bucket,
            _NO_BUCKET,
        ),
        "repository": _Kind(
            Overridable(
                "gcp:artifactregistry/repository:Repository",
                {
                    "repositoryId": "name",
                    "project": "cloud.project",
                    "location": "cloud.location",
                    "dockerConfig.immutableTags": "teams[].registry.immutableTags",
                    "kmsKeyName": "cloud.keys.registries",
                    **_labels("labels"),
                },
                {
                    "format": Relied("Images could not be pushed.", value="DOCKER"),
                    "mode": Relied("Images could not be pushed.", value="STANDARD_REPOSITORY"),
                },
            ),
            has_registry,
            _NO_REGISTRY,
        ),
    },
    aks={
        "virtual_network": _of_network(
            "azure-native:network:VirtualNetwork",
            {**_AZURE, "virtualNetworkName": "name", "addressSpace": "cloud.network.nodes"},
            "subnets",
        ),
        "subnet": _of_network(
            "azure-native:network:Subnet",
            {"resourceGroupName": "cloud.resourceGroup", "virtualNetworkName": "name"},
            *("subnetName", "name", "addressPrefix", "addressPrefixes"),
        ),
        "storage_account": _of_bucket(
            _ACCOUNT,
            {**_AZURE, "accountName": "name"},
            {
                "kind": Relied("It would not be the account of a bucket.", value="StorageV2"),
                "isHnsEnabled": Relied("Pods mount the bucket as a file system.", value=True),
                "allowSharedKeyAccess": Relied(_BY_ROLES, value=False),
            },
        ),
        "file_storage_account": _Kind(
            Overridable(
                _ACCOUNT,
                _AZURE | {"accountName": "name"},
                {
                    "kind": Relied("It would not be the account of a premium share.", value="FileStorage"),
                    "allowSharedKeyAccess": Relied("Nodes mount the share with its key.", value=True),
                },
            ),
            lambda cluster: any(team.volume and team.volume.kind == "azure-files" for team in cluster.teams),
            "No team has a volume of Azure Files.",
        ),
        "blob_service": _of_bucket(
            "azure-native:storage:BlobServiceProperties",
            {"accountName": "name", "blobServicesName": "name"},
            dict.fromkeys(
                ("isVersioningEnabled", "changeFeed.enabled", "restorePolicy.enabled"),
                Relied("A bucket has a hierarchical namespace, which does not support it.", value=False),
            ),
        ),
        "management_policy": _of_bucket(
            "azure-native:storage:ManagementPolicy", {"accountName": "name", "managementPolicyName": "name"}
        ),
        "registry": _Kind(
            Overridable(
                "azure-native:containerregistry:Registry",
                _AZURE | {"registryName": "name"},
                {"adminUserEnabled": Relied(_BY_ROLES, value=False)},
            ),
            has_registry,
            _NO_REGISTRY,
        ),
    },
)
"""Kinds of resources whose inputs can be overridden, by cloud and field of `cloud.resources`."""


def resource_overrides(cluster: Cluster) -> dict[tuple[str, object], dict[str, Any]]:
    """Return the declared overrides by type token and, of storage accounts, their `kind`."""
    return {
        (kind.of.token, kind.of.relied_on["kind"].value if "kind" in kind.of.relied_on else None): own
        for _, kind, own in _written(cluster)
    }


def _written(cluster: Cluster) -> Iterator[tuple[str, _Kind, dict[str, Any]]]:
    """Yield the path of each kind with overrides, the kind and the overrides."""
    declared = cluster.cloud.resources
    for name, kind in KINDS[cluster.site.cloud].items():
        if own := getattr(declared, name):
            yield f"cloud.resources.{type(declared).model_fields[name].alias}", kind, own


@cluster_rule("supported resource overrides", SOURCE)
def _supported(cluster: Cluster) -> Iterator[Fault]:
    for path, kind, own in _written(cluster):
        yield from override_faults(kind.of, path, own)


@cluster_rule(
    "overridden resources are created",
    "topologies of components/gke and components/aks (2026)",
    severity=Severity.WARNED,
)
def _created(cluster: Cluster) -> Iterator[Fault]:
    for path, kind, _ in _written(cluster):
        if not kind.is_created(cluster):
            yield Fault(path, kind.reason, "The overrides have no effect.", "Remove them.")
