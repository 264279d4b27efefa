"""Projects, subscriptions and clusters of a stack's state."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ebbtide.clients.clouds.interfaces import Account, ClusterIdentity
from ebbtide.clients.kubernetes.parts import part, text
from ebbtide.declaration.catalog import CloudKind

Item = Mapping[str, Any]

GKE_CLUSTER: Final = "gcp:container/cluster:Cluster"
AKS_CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
CLUSTERS: Final = frozenset({GKE_CLUSTER, AKS_CLUSTER})
_GKE: Final = "gcp:container/"
_AKS: Final = "azure-native:containerservice:"


def accounts(resources: Iterable[Item]) -> tuple[Account, ...]:
    """Return the projects and subscriptions of the state's clusters and node pools.

    Args:
        resources: `resources` of the output of `pulumi stack export`.
    """
    listed = [
        *(
            Account(CloudKind.GKE, project)
            for item in resources
            if str(item["type"]).startswith(_GKE) and (project := _known(item, "project"))
        ),
        *(
            Account(CloudKind.AKS, _segment(text(item, "id"), "subscriptions"))
            for item in resources
            if str(item["type"]).startswith(_AKS) and text(item, "id")
        ),
    ]
    return tuple(dict.fromkeys(listed))


def clusters(resources: Iterable[Item]) -> Iterator[ClusterIdentity]:
    """Yield the clusters that the stack created, or began to create.

    Args:
        resources: resources of the state, and of its pending operations.
    """
    for item in resources:
        if item.get("external"):
            continue
        if item["type"] == GKE_CLUSTER and _known(item, "project"):
            yield ClusterIdentity(
                account=Account(CloudKind.GKE, _known(item, "project")),
                location=_known(item, "location"),
                name=_known(item, "name"),
            )
        elif item["type"] == AKS_CLUSTER and text(item, "id"):
            yield ClusterIdentity(
                account=Account(CloudKind.AKS, _segment(text(item, "id"), "subscriptions")),
                location=_known(item, "location"),
                name=_segment(text(item, "id"), "managedClusters"),
                resource_group=_segment(text(item, "id"), "resourceGroups"),
                node_resource_group=text(item, "outputs", "nodeResourceGroup"),
            )


def _known(item: Item, name: str) -> str:
    """Return an output, or the input of a resource whose creation was interrupted."""
    return str(part(item, "outputs").get(name) or part(item, "inputs").get(name) or "")


def _segment(identity: str, name: str) -> str:
    """Return the segment of a path after a named one; names are case-insensitive on Azure."""
    parts = identity.split("/")
    lower = [segment.lower() for segment in parts]
    return parts[lower.index(name.lower()) + 1] if name.lower() in lower[:-1] else ""
