"""Types of the clouds' resources, and their ids, of which Azure's are compared without case; and references
between resources: what has to exist, what is in use, and what is deleted with it.

Sources of the references: the clouds' APIs: Compute, GKE v1, IAM, Cloud Storage, Artifact Registry and
Filestore (2026); Azure Resource Manager, AKS 2025-09-01, Azure Monitor 2022-06-01 (2026).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from ebbtide.analysis.changes.property_path import values_at
from ebbtide.values.cloud_kind import by_cloud
from ebbtide_rehearsal.cloud.store import Resource, Store

GCP: Final = "gcp"
AZURE: Final = "azure-native"
"""Packages of the providers, under which the store has their resources."""
PACKAGES: Final = by_cloud(gke=GCP, aks=AZURE)

NETWORK: Final = "gcp:compute/network:Network"
SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
FUTURE_RESERVATION: Final = "gcp:compute/futureReservation:FutureReservation"
GKE_CLUSTER: Final = "gcp:container/cluster:Cluster"
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
BUCKET: Final = "gcp:storage/bucket:Bucket"
OBJECT: Final = "storage#object"
FILESTORE: Final = "gcp:filestore/instance:Instance"
REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"

GROUP: Final = "azure-native:resources:ResourceGroup"
VNET: Final = "azure-native:network:VirtualNetwork"
SUBNET: Final = "azure-native:network:Subnet"
AKS_CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
AGENT_POOL: Final = "azure-native:containerservice:AgentPool"
ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"
REGISTRY: Final = "azure-native:containerregistry:Registry"

EVENTS: Final[Mapping[str, str]] = {
    GKE_CLUSTER: "cluster",
    AKS_CLUSTER: "cluster",
    NODE_POOL: "node-pool",
    AGENT_POOL: "node-pool",
    FILESTORE: "file-store",
    REPOSITORY: "repository",
    REGISTRY: "registry",
}
"""Nouns of the types whose changes are in the timeline."""
_RESERVATIONS: Final = "azure-native:compute:CapacityReservationGroup"
_WORKSPACE: Final = "azure-native:operationalinsights:Workspace"
TAKEN: Final[Mapping[str, tuple[str, ...]]] = {
    ASSIGNMENT: ("scope", "roleDefinitionId", "principalId"),
    "azure-native:managedidentity:FederatedIdentityCredential": ("resourceName", "issuer", "subject"),
    "azure-native:storage:StorageAccount": ("accountName",),
    REGISTRY: ("registryName",),
}
"""Properties that no two resources of a type share, whatever their ids (Azure/bicep#11367,
Azure/bicep-types-az#2054, hashicorp/terraform#11485, MicrosoftDocs/azure-dev-docs#1303)."""


class Pools(NamedTuple):
    """The pools of a type of clusters.

    Attributes:
        kind: kind of its control planes.
        type: type of its pools.
        below: what is between the ids of a cluster and its pools.
    """

    kind: Literal["gke", "aks"]
    type: str
    below: str


POOLS_OF: Final[Mapping[str, Pools]] = {
    GKE_CLUSTER: Pools("gke", NODE_POOL, "/nodePools/"),
    AKS_CLUSTER: Pools("aks", AGENT_POOL, "/agentPools/"),
}


def azure_type(path: str) -> str:
    """Return Azure's name of the type of an id, such as `Microsoft.Network/virtualNetworks/subnets`."""
    words = path.rpartition("/providers/")[2].split("/")
    return "/".join([words[0], *words[1::2]])


def same(identity: str, other: str) -> bool:
    """Return whether two ids name the same resource."""
    return identity.lower() == other.lower()


def within(identity: str, scope: str) -> bool:
    """Return whether a resource is a scope, or below it."""
    return f"{identity.lower()}/".startswith(f"{scope.lower()}/")


def group_of(identity: str) -> str:
    """Return the id of a resource's resource group; empty for none."""
    match = re.match(r"/subscriptions/[^/]+/resourceGroups/[^/]+", identity, re.IGNORECASE)
    return match[0] if match else ""


def last(identity: str) -> str:
    """Return the name at the end of an id or link."""
    return identity.rpartition("/")[2]


class Reference(NamedTuple):
    """A property that refers to another resource, by its id, a link or its name.

    Attributes:
        path: path of the property, without indices.
        target: type token of the other resource; empty for any.
        use: `needs`: it has to exist; `uses`: and cannot be deleted meanwhile; `part`: this one is deleted
            with it.
        item: path of names in the other resource, without indices, of which the value is one; empty for the
            resource itself.
        within: property that refers to the resource with the items.
    """

    path: str
    target: str
    use: Literal["needs", "uses", "part"] = "needs"
    item: str = ""
    within: str = ""


_IN_NETWORK: Final = (Reference("network", NETWORK, "uses"),)
_IDENTITIES: Final = Reference(
    "identity.userAssignedIdentities", "azure-native:managedidentity:UserAssignedIdentity"
)
_MONITORED: Final = Reference("resourceUri", "")


def _range(path: str) -> Reference:
    """Return the reference to a secondary range of the subnetwork."""
    return Reference(path, SUBNETWORK, item="secondaryIpRanges.rangeName", within="subnetwork")


REFERENCES: Final[Mapping[str, tuple[Reference, ...]]] = {
    SUBNETWORK: _IN_NETWORK,
    "gcp:compute/firewall:Firewall": _IN_NETWORK,
    "gcp:compute/router:Router": _IN_NETWORK,
    "gcp:compute/routerNat:RouterNat": (
        Reference("router", "gcp:compute/router:Router", "part"),
        Reference("subnetworks.name", SUBNETWORK),
    ),
    GKE_CLUSTER: (
        *_IN_NETWORK,
        Reference("subnetwork", SUBNETWORK, "uses"),
        _range("ipAllocationPolicy.clusterSecondaryRangeName"),
        _range("ipAllocationPolicy.servicesSecondaryRangeName"),
    ),
    NODE_POOL: (Reference("networkConfig.additionalNodeNetworkConfigs.subnetwork", SUBNETWORK, "uses"),),
    FILESTORE: (Reference("networks.network", NETWORK, "uses"),),
    "gcp:serviceaccount/iAMMember:IAMMember": (
        Reference("serviceAccountId", "gcp:serviceaccount/account:Account", "part"),
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": (Reference("bucket", BUCKET, "part"),),
    OBJECT: (Reference("bucket", BUCKET, "part"),),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": (
        Reference("repository", REPOSITORY, "part"),
    ),
    AKS_CLUSTER: (
        _IDENTITIES,
        Reference("agentPoolProfiles.vnetSubnetID", SUBNET),
        Reference("addonProfiles.omsagent.config.logAnalyticsWorkspaceResourceID", _WORKSPACE),
    ),
    AGENT_POOL: (
        Reference("vnetSubnetID", SUBNET, "uses"),
        Reference("capacityReservationGroupID", _RESERVATIONS, "uses"),
    ),
    "azure-native:storage:StorageAccount": (_IDENTITIES,),
    REGISTRY: (_IDENTITIES,),
    ASSIGNMENT: (Reference("scope", ""),),
    "azure-native:monitor:DataCollectionRule": (
        Reference("destinations.logAnalytics.workspaceResourceId", _WORKSPACE),
        Reference(
            "destinations.monitoringAccounts.accountResourceId", "azure-native:monitor:AzureMonitorWorkspace"
        ),
        Reference("dataCollectionEndpointId", "azure-native:monitor:DataCollectionEndpoint"),
    ),
    "azure-native:monitor:DataCollectionRuleAssociation": (
        _MONITORED,
        Reference("dataCollectionRuleId", "azure-native:monitor:DataCollectionRule"),
    ),
    "azure-native:monitor:DiagnosticSetting": (_MONITORED, Reference("workspaceId", _WORKSPACE)),
}
"""References by type token."""


def references(token: str) -> tuple[Reference, ...]:
    """Return the references of a type; those of the cluster's controllers are in a network."""
    return _IN_NETWORK if token.startswith("compute#") else REFERENCES.get(token, ())


def referred(token: str, properties: Mapping[str, Any]) -> Iterator[tuple[Reference, str]]:
    """Yield the references in a resource's properties, each with its value."""
    for reference in references(token):
        for _, value in values_at(dict(properties), reference.path):
            for text in value if isinstance(value, list | dict) else [value]:  # pyright: ignore[reportUnknownVariableType] # JSON
                if text:
                    yield reference, str(text)  # pyright: ignore[reportUnknownArgumentType] # JSON


def is_of(reference: str, identity: str) -> bool:
    """Return whether a reference is a resource's id, a link to it, or its name."""
    text, own = reference.lower(), identity.lower()
    return text == own or own.endswith(f"/{text}") or text.endswith(f"/{own}")


def referring(store: Store, resource: Resource, use: str) -> Iterator[Resource]:
    """Yield the resources outside of a resource that refer in a way to it, or to a resource below it."""
    known = store.resources(resource.cloud)
    targets = [other for other in known if within(other.id, resource.id)]
    for other in known:
        if any(
            reference.use == use and reference.target == target.type and is_of(text, target.id)
            for reference, text in referred(other.type, {**other.state, **other.inputs})
            for target in targets
        ) and not within(other.id, resource.id):
            yield other
