"""Types of the clouds' resources, and their ids; those of Azure are compared without case."""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from ebbtide.values.cloud_kind import by_cloud

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
