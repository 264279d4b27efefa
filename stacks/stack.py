"""The stack of a declaration, and what it says to the outside."""

from typing import assert_never

import pulumi

from ebbtide.model import Aks, Cluster, Gke
from ebbtide.placement.derive import profile


def build(declaration: Cluster) -> dict[str, pulumi.Input[object]]:
    """Make the declared cluster on its cloud.

    Returns:
        The stack's outputs: `clusterName`, `kubeconfig` (a secret), `placementProfile`.
    """
    match declaration.cloud:
        case Gke() as cloud:
            from stacks import gke  # noqa: PLC0415 - a stack loads the provider of its own cloud alone

            topology = gke.build(declaration, cloud)
        case Aks() as cloud:
            from stacks import aks  # noqa: PLC0415 - a stack loads the provider of its own cloud alone

            topology = aks.build(declaration, cloud)
        case _:
            assert_never(declaration.cloud)
    return {
        "clusterName": topology.cluster_name,
        "kubeconfig": topology.kubeconfig,
        "placementProfile": profile(declaration).data(),
    }
