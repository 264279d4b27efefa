"""A GKE cluster and everything that is declared to run on it; its components are usable on their own."""

import pulumi
import pulumi_gcp as gcp

from ebbtide.declaration.model.cloud import Gke
from ebbtide.declaration.model.cluster import Cluster as Declaration

from ..addons.addons import AddonsArgs, add_ons
from ..inputs import require_cloud
from .cluster import Cluster, ClusterArgs
from .identity import Identity, IdentityArgs, KeyGrants, KeyGrantsArgs, Members, key_grants
from .network import GpuNetworks, Interface, Network, NetworkArgs
from .node_pool import NodePool, NodePoolArgs, future_reservation
from .teams import Registry, Tenant, artifacts, team_resources
from .topology import Topology

__all__ = [
    "Cluster",
    "ClusterArgs",
    "GpuNetworks",
    "Identity",
    "IdentityArgs",
    "Interface",
    "KeyGrants",
    "KeyGrantsArgs",
    "Members",
    "Network",
    "NetworkArgs",
    "NodePool",
    "NodePoolArgs",
    "Registry",
    "Tenant",
    "Topology",
    "deploy",
    "future_reservation",
    "key_grants",
    "provider",
]


def provider(name: str, declaration: Declaration, opts: pulumi.ResourceOptions | None = None) -> gcp.Provider:
    """Return a provider for the declared project and region; they override the environment's.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = require_cloud(declaration, Gke)
    return gcp.Provider(name, project=cloud.project, region=declaration.site.region, opts=opts)


def deploy(
    declaration: Declaration,
    provider: gcp.Provider | None,
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
    store = artifacts(topology, declaration)
    args = AddonsArgs(
        declaration=declaration,
        create_resources=team_resources(topology, declaration, store),
        pools=tuple(pool.resource for pool in topology.pools.values()),
        pool_names={name: pool.pool_name for name, pool in topology.pools.items()},
        artifacts=store,
        deleted_with=topology.cluster.resource if topology.cluster else None,
    )
    add_ons(args, topology.kubernetes, parent)
    return topology
