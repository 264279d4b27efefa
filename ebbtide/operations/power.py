"""The cluster of a stack for `sleep` and `wake`: its id and the sizes of its node pools, from the state.

The sizes are those of the last `up`, so that nothing else has to be stored while the cluster sleeps.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbtide.catalog import CloudKind
from ebbtide.cloud_apis.node_pools import NodePoolSize
from ebbtide.kubernetes_api.parts import part, text, words
from ebbtide.operations.errors import OperationError

_CLUSTERS: Final = {
    "gcp:container/cluster:Cluster": CloudKind.GKE,
    "azure-native:containerservice:ManagedCluster": CloudKind.AKS,
}
_GKE_POOL: Final = "gcp:container/nodePool:NodePool"


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """A cluster that a stack created.

    Attributes:
        cloud: its cloud.
        id: id in the cloud.
        name: its name.
        pools: on Google Cloud the sizes of its node pools, those with a minimum above zero first.
    """

    cloud: CloudKind
    id: str
    name: str
    pools: tuple[NodePoolSize, ...]


def own_cluster(stack: str, deployment: Mapping[str, Any]) -> OwnCluster:
    """Return the cluster of a stack.

    Args:
        stack: the stack's name.
        deployment: the `deployment` of `pulumi stack export`.

    Raises:
        OperationError: the stack has no cluster of its own, or several.
    """
    resources: list[Mapping[str, Any]] = deployment.get("resources") or []
    clusters = [item for item in resources if item["type"] in _CLUSTERS and not item.get("external")]
    if not clusters:
        raise OperationError(
            f"Stack {stack} has no cluster of its own. Ebbtide never stops an existing cluster, which may "
            "have other users."
        )
    if len(clusters) > 1:
        raise OperationError(f"Stack {stack} has {len(clusters)} clusters; sleep and wake need one.")
    (cluster,) = clusters
    sizes = [
        _size(item)
        for item in resources
        if item["type"] == _GKE_POOL and str(item.get("id")).startswith(f"{cluster['id']}/")
    ]
    return OwnCluster(
        _CLUSTERS[cluster["type"]],
        str(cluster["id"]),
        text(cluster, "outputs", "name") or str(cluster["id"]).rpartition("/")[2],
        tuple(sorted(sizes, key=lambda size: size.count == 0)),
    )


def _size(pool: Mapping[str, Any]) -> NodePoolSize:
    """Return the size of a running pool: its fixed count, or the autoscaler's minimum. GKE counts nodes per
    zone, except in total limits.
    """
    inputs = part(pool, "inputs")
    autoscaling = dict(_without_defaults(part(inputs, "autoscaling")))
    name = str(pool["id"]).rpartition("/")[2]
    if not autoscaling:
        return NodePoolSize(name, {}, int(inputs.get("nodeCount") or inputs.get("initialNodeCount") or 0))
    zones = len(words(pool, "outputs", "nodeLocations")) or 1
    total = int(autoscaling.get("totalMinNodeCount") or 0)
    return NodePoolSize(name, autoscaling, max(-(-total // zones), int(autoscaling.get("minNodeCount") or 0)))


def _without_defaults(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield inputs without the bridge's list of defaulted properties."""
    return ((name, value) for name, value in inputs.items() if not name.startswith("__"))
