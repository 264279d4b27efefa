"""An AKS cluster and everything that is declared to run on it; its components are usable on their own."""

import pulumi
import pulumi_azure_native as azure_native

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import Kueue
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster as Declaration

from ..addons.addons import AddonsArgs, add_ons
from ..inputs import require_cloud
from .cluster import Cluster, ClusterArgs, MaintenanceSchedules
from .identity import Identity, IdentityArgs, Members, VaultKey, VaultKeyArgs
from .network import Network, NetworkArgs
from .node_pool import CapacityReservation, CapacityReservationArgs, NodePool, NodePoolArgs
from .teams import Registry, Tenant, team_resources
from .topology import Topology

__all__ = [
    "CapacityReservation",
    "CapacityReservationArgs",
    "Cluster",
    "ClusterArgs",
    "Identity",
    "IdentityArgs",
    "MaintenanceSchedules",
    "Members",
    "Network",
    "NetworkArgs",
    "NodePool",
    "NodePoolArgs",
    "Registry",
    "Tenant",
    "Topology",
    "VaultKey",
    "VaultKeyArgs",
    "deploy",
    "provider",
]


def provider(
    name: str, declaration: Declaration, opts: pulumi.ResourceOptions | None = None
) -> azure_native.Provider:
    """Return a provider for the declared subscription and location; they override the environment's.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = require_cloud(declaration, Aks)
    return azure_native.Provider(name, subscription_id=cloud.subscription, location=cloud.location, opts=opts)


def deploy(
    declaration: Declaration,
    provider: azure_native.Provider | None,
    parent: pulumi.Resource | None = None,
) -> Topology:
    """Create the cluster's topology and its declared add-ons, queues and teams.

    Args:
        declaration: the whole declaration.
        provider: the result of `provider`, or the program's own provider; None for the parent's.
        parent: the component that contains them. Default: the stack.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    options = pulumi.ResourceOptions(parent=parent, providers=[provider] if provider else None)
    topology = Topology(declaration.name, declaration, options)
    kueue = declaration.addons.kueue
    managed = None
    if kueue is not None and kueue.is_managed and declaration.has_kueue:
        managed = _managed_kueue(f"{declaration.name}-kueue", topology, options)
    args = AddonsArgs(
        declaration=declaration,
        create_resources=team_resources(topology, declaration),
        managed_kueue=managed,
        pools=tuple(pool.resource for pool in topology.pools.values()),
        pool_names={name: pool.resource.id.apply(_last) for name, pool in topology.pools.items()},
        deleted_with=topology.cluster.resource if topology.cluster else None,
    )
    add_ons(args, topology.kubernetes, parent)
    return topology


def _last(identity: str) -> str:
    """Return the last segment of an id, which is known in the preview of an update, unlike outputs."""
    return identity.rpartition("/")[2]


def _managed_kueue(
    name: str, topology: Topology, opts: pulumi.ResourceOptions
) -> "azure_native.kubernetesconfiguration.Extension":
    """Create the extension of AKS' managed Kueue, at a pinned version: AKS would upgrade minor versions
    otherwise.

    It installs Kueue's controller and kinds, a ResourceFlavor for the user nodes, and three
    WorkloadPriorityClasses, whose names begin with `aks-`; queues are the user's. Its settings are not
    documented, and Ebbtide sets none. Source: azure-aks-docs, kueue-overview (2026-11).
    """
    cluster = topology.cluster.resource if topology.cluster else None
    alone = pulumi.ResourceOptions(deleted_with=cluster, depends_on=cluster)
    return azure_native.kubernetesconfiguration.Extension(
        name,
        extension_name=Kueue.spec.name,
        extension_type="microsoft.kueue",
        cluster_rp="Microsoft.ContainerService",
        cluster_resource_name="managedClusters",
        cluster_name=topology.cluster_name,
        resource_group_name=topology.resource_group,
        scope={"cluster": {"release_namespace": Kueue.spec.namespace}},
        auto_upgrade_minor_version=False,
        version=PINS["kueue-managed"].version,
        opts=pulumi.ResourceOptions.merge(opts, alone),
    )
