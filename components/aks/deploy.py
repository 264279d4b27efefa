"""An AKS cluster and everything that is declared to run on it."""

import pulumi
import pulumi_azure_native as azure_native

from ebbtide.model import Aks
from ebbtide.model import Cluster as Declaration

from ..addons import Addons, AddonsArgs, has_add_ons
from ..clouds import require_cloud
from .team_resources import team_resources
from .topology import Topology


def deploy(declaration: Declaration, provider: azure_native.Provider) -> Topology:
    """Create the cluster's topology and its declared add-ons, queues and teams.

    Args:
        declaration: the whole declaration.
        provider: the result of `provider`, or the program's own provider.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = require_cloud(declaration, Aks)
    topology = Topology(declaration.name, declaration, pulumi.ResourceOptions(providers=[provider]))
    if has_add_ons(declaration):
        Addons(
            f"{declaration.name}-addons",
            AddonsArgs(
                declaration=declaration,
                create_resources=team_resources(topology, declaration, cloud),
                pools=tuple(pool.resource for pool in topology.pools.values()),
                pool_names={name: pool.resource.id.apply(_last) for name, pool in topology.pools.items()},
                deleted_with=topology.cluster.resource if topology.cluster else None,
            ),
            pulumi.ResourceOptions(providers=[topology.kubernetes]),
        )
    return topology


def _last(identity: str) -> str:
    """Return the last segment of an id, which is known in the preview of an update, unlike outputs."""
    return identity.rpartition("/")[2]
