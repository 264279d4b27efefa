"""Azure resources of an AKS cluster's teams."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_azure_native import containerservice

from ebbtide.declaration.model import Aks, Team
from ebbtide.declaration.model import Cluster as Declaration
from ebbtide.placement.team_storage import bucket_name, keeps_registry, registry_name

from ..addons.team_resources import CreateTeamResources, TeamResources
from ..ownership import of_team
from .registry import Registry, RegistryArgs
from .tenant import Tenant, TenantArgs
from .topology import Topology


def _issuer(declaration: Declaration, topology: Topology) -> pulumi.Output[str]:
    """Return the URL of the cluster's OIDC issuer, which an existing cluster must have."""
    if topology.cluster is not None:
        profile = topology.cluster.resource.oidc_issuer_profile
        return profile.apply(lambda oidc: (oidc.issuer_url if oidc else None) or "")
    cluster = containerservice.get_managed_cluster_output(
        resource_name=declaration.physical_name,
        resource_group_name=topology.resource_group,
        opts=pulumi.InvokeOutputOptions(parent=topology),
    )
    return cluster.apply(
        lambda cluster: (
            (cluster.oidc_issuer_profile.issuer_url if cluster.oidc_issuer_profile else None) or ""
        )
    )


def _kubelet(declaration: Declaration, topology: Topology) -> pulumi.Output[str]:
    """Return the object id of the identity with which the cluster's nodes pull images."""
    if topology.cluster is not None:
        # AKS gives every created cluster such an identity; only a unit test's mocks return none.
        return topology.cluster.resource.identity_profile.apply(
            lambda profile: _object_id(profile) if profile else ""
        )
    cluster = containerservice.get_managed_cluster_output(
        resource_name=declaration.physical_name,
        resource_group_name=topology.resource_group,
        opts=pulumi.InvokeOutputOptions(parent=topology),
    )
    return cluster.identity_profile.apply(_object_id)


def _object_id(profile: Mapping[str, Any] | None) -> str:
    identity = (profile or {}).get("kubeletidentity")
    object_id = identity.object_id if identity is not None else None
    if not object_id:
        raise pulumi.RunError(
            "The AKS cluster has no kubelet identity, so its nodes could not pull images from a registry. "
            "Enable a managed identity with `az aks update --enable-managed-identity`, or remove "
            "teams[].registry."
        )
    return str(object_id)


def _registry(name: str, team: Team, declaration: Declaration, cloud: Aks, topology: Topology) -> None:
    if team.registry is None:
        return
    args = RegistryArgs(
        name=registry_name(declaration, team),
        group_name=f"{declaration.name}-{team.stored_as}-images-kept",
        subscription=cloud.subscription,
        resource_group=topology.resource_group,
        location=cloud.location,
        keep=keeps_registry(declaration, team),
        members=team.members,
        kubelet=_kubelet(declaration, topology),
        labels=of_team(topology.labels, team.name),
    )
    Registry(f"{name}-images", args, pulumi.ResourceOptions(parent=topology))


def team_resources(topology: Topology, declaration: Declaration, cloud: Aks) -> CreateTeamResources:
    """Return a function that creates a team's identity, bucket and volume in the topology."""

    def create(team: Team) -> TeamResources:
        args = TenantArgs(
            team=team,
            cluster=declaration.name,
            subscription=cloud.subscription,
            bucket=bucket_name(declaration, team),
            resource_group=topology.resource_group,
            location=cloud.location,
            issuer=_issuer(declaration, topology),
            subnet=topology.own_subnet,
            keep=not declaration.is_ephemeral,
            labels=of_team(topology.labels, team.name),
        )
        _registry(f"{declaration.name}-team-{team.stored_as}", team, declaration, cloud, topology)
        name = f"{declaration.name}-team-{team.name}"
        return Tenant(name, args, pulumi.ResourceOptions(parent=topology)).resources

    return create
