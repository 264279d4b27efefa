"""A cluster on Google Kubernetes Engine."""

import pulumi
import pulumi_gcp as gcp

from components.addons import Addons, AddonsArgs, wanted
from components.gke import Topology, artifacts, backing
from ebbtide.model import Cluster, Gke


def build(declaration: Cluster, cloud: Gke) -> Topology:
    """The cluster and what is declared to run on it, with a provider made from the declaration: an ambient
    project never wins."""
    provider = gcp.Provider(f"{declaration.name}-gcp", project=cloud.project, region=declaration.site.region)
    topology = Topology(declaration.name, declaration, pulumi.ResourceOptions(providers=[provider]))
    if wanted(declaration):
        Addons(
            f"{declaration.name}-addons",
            AddonsArgs(
                declaration=declaration,
                backing=backing(topology, declaration, cloud),
                pools=tuple(pool.resource for pool in topology.pools.values()),
                artifacts=artifacts(topology, declaration, cloud),
                dies_with=topology.cluster.resource if topology.cluster else None,
            ),
            pulumi.ResourceOptions(providers=[topology.kubernetes]),
        )
    return topology
