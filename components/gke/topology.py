"""All resources of a GKE cluster."""

from dataclasses import dataclass

import pulumi

from ebbtide.declaration.model.cloud import Gke
from ebbtide.declaration.model.cluster import Cluster as Declaration

from .. import topology
from ..inputs import require_cloud
from ..replacement import node_pools
from ..topology import of_pool
from .cluster import Cluster, ClusterArgs, existing_kubeconfig, own_kubeconfig
from .identity import Identity, IdentityArgs, KeyGrants, Members, key_grants
from .network import GpuNetworks, Network, NetworkArgs
from .node_pool import NodePool, NodePoolArgs, future_reservation, reservation_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The cluster that node pools belong to: a new or an existing one."""

    cluster_name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    cluster: Cluster | None = None
    node_account: pulumi.Output[str] | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()
    key_grants: KeyGrants | None = None


class Topology(topology.Topology):
    """Network, identity, cluster and node pools; for an existing cluster, only node pools.

    The Kubernetes provider depends on the system pool, without which nothing runs.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """

    cloud: Gke
    pools: dict[str, NodePool]
    cluster: Cluster | None
    """None for an existing cluster."""
    key_grants: KeyGrants | None
    """None without declared keys, or if their owner has granted the roles."""

    def __init__(
        self, name: str, declaration: Declaration, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        cloud = self.cloud = require_cloud(declaration, Gke)
        super().__init__(name, declaration, opts)
        base = (
            _existing(name, declaration, cloud, self)
            if cloud.existing
            else _own(name, declaration, cloud, self)
        )
        self.cluster = base.cluster
        self.key_grants = base.key_grants
        self.cluster_name = base.cluster_name
        self.kubeconfig = base.kubeconfig
        depends_on = (*base.depends_on, *(base.key_grants.disks if base.key_grants else ()))
        inside = pulumi.ResourceOptions(parent=self)
        requested = {
            pool.name: reservation
            for pool in declaration.resolved_pools
            if (
                reservation := future_reservation(
                    f"{name}-{pool.name}-reservation", pool, declaration.physical_name, cloud.project, inside
                )
            )
        }
        networks = None
        if declaration.gpu_networks:
            networks = GpuNetworks(f"{name}-gpu", declaration, cloud, inside)
        self.pools = node_pools(
            NodePool,
            name,
            (
                NodePoolArgs(
                    pool=pool,
                    site=declaration.site,
                    cluster=base.cluster_name,
                    project=cloud.project,
                    service_account=base.node_account,
                    labels=of_pool(self.labels, pool.name),
                    deleted_with=base.cluster.resource if base.cluster else None,
                    protect=pool.protect and not declaration.is_ephemeral,
                    metadata_server=None if cloud.existing and not declaration.teams else True,
                    disk_key=cloud.keys.disks,
                    network_tags=cloud.network_tags,
                    reservation=reservation_name(declaration.physical_name, pool.name)
                    if pool.name in requested
                    else None,
                    interfaces=networks.interfaces_of(pool.gpu_direct) if networks else (),
                    depends_on=(*depends_on, *([requested[pool.name]] if pool.name in requested else ())),
                )
                for pool in declaration.pools
            ),
            inside,
        )
        system = [self.pools[pool.name].resource for pool in declaration.pools if pool.is_system]
        self._reached(name, system)


def _own(name: str, declaration: Declaration, cloud: Gke, parent: Topology) -> _Base:
    inside = pulumi.ResourceOptions(parent=parent)
    network = Network(
        f"{name}-network",
        NetworkArgs(name=declaration.name, region=declaration.site.region, network=cloud.network),
        inside,
    )
    accounts = [pool.service_account for pool in declaration.pools]
    identity = (
        # Of an adopted cluster, every pool has an account, with its owner's grants.
        None
        if all(accounts)
        else Identity(f"{name}-identity", IdentityArgs(name=declaration.name, project=cloud.project), inside)
    )
    node_account = identity.email if identity else pulumi.Output.from_input(accounts[0] or "")
    grants = key_grants(name, cloud, inside)
    cluster = Cluster(
        f"{name}-cluster",
        ClusterArgs(
            declaration=declaration,
            cloud=cloud,
            network=network,
            node_account=node_account,
            labels=parent.labels,
            depends_on=(*grants.secrets, *grants.disks) if grants else (),
        ),
        inside,
    )
    if declaration.members:
        Members(f"{name}-members", declaration, cloud, inside)
    return _Base(
        cluster_name=cluster.cluster_name,
        kubeconfig=own_kubeconfig(cluster, private=cloud.access.private),
        cluster=cluster,
        node_account=node_account,
        depends_on=(*network.egress, *(identity.grants if identity else ())),
        key_grants=grants,
    )


def _existing(name: str, declaration: Declaration, cloud: Gke, parent: Topology) -> _Base:
    return _Base(
        cluster_name=pulumi.Output.from_input(declaration.physical_name),
        kubeconfig=existing_kubeconfig(cloud, declaration.physical_name),
        key_grants=key_grants(name, cloud, pulumi.ResourceOptions(parent=parent)),
    )
