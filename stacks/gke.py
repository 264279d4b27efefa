"""A cluster on Google Kubernetes Engine."""

from components.gke import Topology, deploy, provider
from ebbtide.model import Cluster


def build(declaration: Cluster) -> Topology:
    """Deploy the cluster and everything that is declared to run on it."""
    return deploy(declaration, provider(f"{declaration.name}-gcp", declaration))
