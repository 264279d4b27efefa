"""How an AKS cluster's teams come by what Azure holds for them."""

import pulumi
from pulumi_azure_native import containerservice

from ebbtide.model import Aks, Team
from ebbtide.model import Cluster as Declaration

from ..addons.backing import Backing, MakeBacking
from ..ownership import billing_labels
from .tenant import Tenant, TenantArgs
from .topology import Topology


def _issuer(declaration: Declaration, topology: Topology) -> pulumi.Output[str]:
    """Address of the cluster's OIDC issuer; a cluster that is there already must have one."""
    if topology.cluster is not None:
        profile = topology.cluster.resource.oidc_issuer_profile
        return profile.apply(lambda found: (found.issuer_url if found else None) or "")
    cluster = containerservice.get_managed_cluster_output(
        resource_name=declaration.physical_name,
        resource_group_name=topology.resource_group,
        opts=pulumi.InvokeOutputOptions(parent=topology),
    )
    return cluster.apply(
        lambda found: (found.oidc_issuer_profile.issuer_url if found.oidc_issuer_profile else None) or ""
    )


def backing(topology: Topology, declaration: Declaration, cloud: Aks) -> MakeBacking:
    """What makes a team's identity, bucket and volume, as part of the topology."""

    def make(team: Team) -> Backing:
        args = TenantArgs(
            team=team,
            cluster=declaration.name,
            subscription=cloud.subscription,
            resource_group=topology.resource_group,
            location=cloud.location,
            issuer=_issuer(declaration, topology),
            keep=not declaration.is_ephemeral,
            labels=billing_labels(declaration),
        )
        name = f"{declaration.name}-team-{team.name}"
        return Tenant(name, args, pulumi.ResourceOptions(parent=topology)).backing

    return make
