"""Google Cloud resources of a GKE cluster's teams."""

import re

import pulumi
from pulumi_gcp import compute, container

from ebbtide.declaration.model import Cluster as Declaration
from ebbtide.declaration.model import Gke, Team
from ebbtide.declaration.model.pool import DEFAULT_ACCOUNT
from ebbtide.placement.team_storage import bucket_name, keeps_registry, registry_name

from ..addons.add_on import ArtifactStore
from ..addons.artifacts import IDENTITY, ArtifactBucket, ArtifactBucketArgs
from ..addons.team_resources import CreateTeamResources, TeamResources
from ..ownership import of_team
from .registry import Registry, RegistryArgs
from .tenant import Clients, Tenant, TenantArgs
from .topology import Topology


def _zone(declaration: Declaration) -> str | None:
    """Return a zone where the cluster has nodes: its own, or the first that a pool declares."""
    if declaration.site.is_zonal:
        return declaration.cloud.location
    return next((zone for pool in declaration.pools for zone in pool.zones), None)


def _file_clients(declaration: Declaration, cloud: Gke, topology: Topology) -> Clients:
    """Return the cluster's nodes as clients of file shares: the kubelet mounts them, from a node's address.

    An existing cluster or subnet is looked up.
    """
    if topology.cluster is not None:
        vpc = topology.cluster.resource.network
        if cloud.network.subnet is None:
            return Clients(network=vpc.apply(_last), addresses=cloud.network.nodes)
        subnet = pulumi.Output.from_input(cloud.network.subnet)
    else:
        existing = container.get_cluster_output(
            name=declaration.physical_name,
            location=cloud.location,
            project=cloud.project,
            opts=pulumi.InvokeOutputOptions(parent=topology),
        )
        vpc, subnet = existing.network, existing.subnetwork
    nodes = compute.get_subnetwork_output(
        name=subnet.apply(_last),
        project=subnet.apply(lambda path: _project(path) or cloud.project),
        region=declaration.site.region,
        opts=pulumi.InvokeOutputOptions(parent=topology),
    )
    return Clients(network=vpc.apply(_last), addresses=nodes.ip_cidr_range)


def _project(path: str | None) -> str | None:
    """Return the project of a resource's path, that of the host if the VPC is shared; None for a name."""
    found = re.search("projects/([^/]+)/", path or "")
    return found[1] if found else None


def _last(path: str | None) -> str:
    """Return the name of a resource; empty from a unit test's mocks."""
    return (path or "").rpartition("/")[2]


def _registry(name: str, team: Team, declaration: Declaration, cloud: Gke, topology: Topology) -> None:
    if team.registry is None:
        return
    # The e-mail of the project's default account has the project's number, and is not known here.
    accounts = dict.fromkeys(
        pool.service_account
        for pool in declaration.pools
        if pool.service_account and pool.service_account != DEFAULT_ACCOUNT
    )
    args = RegistryArgs(
        declared=team.registry,
        name=registry_name(declaration, team),
        team=team.name,
        project=cloud.project,
        location=declaration.site.region,
        keep=keeps_registry(declaration, team),
        members=team.members,
        node_accounts=tuple(accounts),
        labels=of_team(topology.labels, team.name),
    )
    Registry(f"{name}-images", args, pulumi.ResourceOptions(parent=topology))


def team_resources(
    topology: Topology, declaration: Declaration, cloud: Gke, artifacts: ArtifactStore | None
) -> CreateTeamResources:
    """Return a function that creates a team's identity, bucket and volume in the topology; `artifacts` has
    the identity that pipeline steps already act as."""

    def create(team: Team) -> TeamResources:
        files = team.volume is not None and team.volume.kind == "filestore"
        args = TenantArgs(
            team=team,
            cluster=declaration.name,
            project=cloud.project,
            bucket=bucket_name(declaration, team),
            region=declaration.site.region,
            zone=_zone(declaration),
            clients=_file_clients(declaration, cloud, topology) if files else None,
            keep=not declaration.is_ephemeral,
            labels=of_team(topology.labels, team.name),
            pipelines=artifacts.identity[IDENTITY] if artifacts else "",
            depends_on=(topology.cluster.resource,) if topology.cluster else (),
        )
        _registry(f"{declaration.name}-team-{team.stored_as}", team, declaration, cloud, topology)
        name = f"{declaration.name}-team-{team.name}"
        return Tenant(name, args, pulumi.ResourceOptions(parent=topology)).resources

    return create


def artifacts(topology: Topology, declaration: Declaration, cloud: Gke) -> ArtifactStore | None:
    """Create the bucket for pipelines' artifacts; None if they are stored in the cluster."""
    pipelines = declaration.addons.installed_pipelines
    if pipelines is None or pipelines.artifacts != "bucket":
        return None
    from ..addons.pipelines_objects import NAMESPACE, WORKERS  # noqa: PLC0415 - with the add-on alone

    args = ArtifactBucketArgs(
        cluster=declaration.name,
        project=cloud.project,
        region=declaration.site.region,
        accounts=tuple(f"{NAMESPACE}/{account}" for account in WORKERS),
        force_destroy=declaration.is_ephemeral,
        labels=topology.labels,
        depends_on=(topology.cluster.resource,) if topology.cluster else (),
    )
    inside = pulumi.ResourceOptions(parent=topology)
    return ArtifactBucket(f"{declaration.name}-artifacts", args, inside).store
