"""A GKE cluster and everything that is declared to run on it."""

import pulumi
import pulumi_gcp as gcp

from ebbtide.model import Cluster as Declaration
from ebbtide.model import Gke

from ..addons import Addons, AddonsArgs, has_add_ons
from ..clouds import require_cloud
from .team_resources import artifacts, team_resources
from .topology import Topology


def deploy(declaration: Declaration, provider: gcp.Provider) -> Topology:
    """Create the cluster's topology and its declared add-ons, queues and teams.

    Args:
        declaration: the whole declaration.
        provider: the result of `provider`, or the program's own provider.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = require_cloud(declaration, Gke)
    topology = Topology(declaration.name, declaration, pulumi.ResourceOptions(providers=[provider]))
    if has_add_ons(declaration):
        store = artifacts(topology, declaration, cloud)
        Addons(
            f"{declaration.name}-addons",
            AddonsArgs(
                declaration=declaration,
                create_resources=team_resources(topology, declaration, cloud, store),
                pools=tuple(pool.resource for pool in topology.pools.values()),
                pool_names={name: pool.pool_name for name, pool in topology.pools.items()},
                artifacts=store,
                deleted_with=topology.cluster.resource if topology.cluster else None,
            ),
            pulumi.ResourceOptions(providers=[topology.kubernetes]),
        )
    return topology
