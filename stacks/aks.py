"""A cluster on Azure Kubernetes Service."""

import pulumi
import pulumi_azure_native as azure_native

from components.addons import Addons, AddonsArgs, wanted
from components.aks import Topology, backing
from ebbtide.model import Aks, Cluster


def build(declaration: Cluster, cloud: Aks) -> Topology:
    """The cluster and what is declared to run on it, with a provider made from the declaration: an ambient
    subscription never wins."""
    provider = azure_native.Provider(
        f"{declaration.name}-azure", subscription_id=cloud.subscription, location=cloud.location
    )
    topology = Topology(declaration.name, declaration, pulumi.ResourceOptions(providers=[provider]))
    if wanted(declaration):
        Addons(
            f"{declaration.name}-addons",
            AddonsArgs(
                declaration=declaration,
                backing=backing(topology, declaration, cloud),
                pools=tuple(pool.resource for pool in topology.pools.values()),
                dies_with=topology.cluster.resource if topology.cluster else None,
            ),
            pulumi.ResourceOptions(providers=[topology.kubernetes]),
        )
    return topology
