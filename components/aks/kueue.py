"""AKS' managed Kueue: a cluster extension."""

import pulumi
from pulumi_azure_native import kubernetesconfiguration

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import Kueue

from .topology import Topology


def managed_kueue(
    name: str, topology: Topology, opts: pulumi.ResourceOptions
) -> kubernetesconfiguration.Extension:
    """Create the extension, at a pinned version: AKS would upgrade minor versions otherwise.

    It installs Kueue's controller and kinds, a ResourceFlavor for the user nodes, and three
    WorkloadPriorityClasses, whose names begin with `aks-`; queues are the user's. Its settings are not
    documented, and Ebbtide sets none. Source: azure-aks-docs, kueue-overview (2026-11).
    """
    cluster = topology.cluster.resource if topology.cluster else None
    alone = pulumi.ResourceOptions(deleted_with=cluster, depends_on=cluster)
    return kubernetesconfiguration.Extension(
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
