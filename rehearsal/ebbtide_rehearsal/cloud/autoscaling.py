"""What a cluster's autoscaler is told: a cloud's API is told so, and the node pools' own controllers go by
it, from the next time that they look.
"""

from dataclasses import asdict, dataclass
from typing import Final, Literal

from ebbtide_rehearsal.cloud.store import Resource, Store

_CLOUD: Final = "nodes"
_TYPE: Final = "autoscaler"

Expander = Literal["random", "most-pods", "least-waste", "priority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """What a cluster's autoscaler is told, with its defaults. Simulated seconds.

    They are those of the cluster autoscaler, which AKS has too (azure-aks-docs, cluster-autoscaler,
    2026-07-30). GKE publishes no numbers for either of its two profiles, and `OPTIMIZE_UTILIZATION` is no
    setting of the cluster autoscaler (kubernetes/autoscaler#2798): these stand for both, so that nodes go no
    earlier here than there.

    Attributes:
        expander: how one of several node pools is chosen. GKE has a way of its own.
        idle_seconds: how long a node is not needed before it goes (`scale-down-unneeded-time`).
        settle_seconds: no node goes so long after one was added (`scale-down-delay-after-add`).
        utilization: a node with a larger share of it requested is never removed
            (`scale-down-utilization-threshold`).
        daemons_count: whether pods of DaemonSets count in that (`ignore-daemonsets-utilization`, turned
            round).
        eviction_seconds: how long pods of a node that goes have to end (`max-graceful-termination-sec`).
        local_storage_holds: whether a pod with an emptyDir or hostPath holds its node
            (`skip-nodes-with-local-storage`). Not on AKS, nor on GKE since 1.22.
        system_pods_hold: whether a pod of kube-system without a disruption budget does
            (`skip-nodes-with-system-pods`).
    """

    expander: Expander = "random"
    idle_seconds: float = 600
    settle_seconds: float = 600
    utilization: float = 0.5
    daemons_count: bool = True
    eviction_seconds: float = 600
    local_storage_holds: bool = False
    system_pods_hold: bool = True


def instruct(store: Store, cluster: str, told: Autoscaling) -> None:
    """Tell the autoscaler of the cluster of an id."""
    store.put(Resource(_CLOUD, _id(cluster), _TYPE, state=asdict(told)))


def dismiss(store: Store, cluster: str) -> None:
    """A cluster goes, and its autoscaler with it."""
    store.remove(_CLOUD, _id(cluster))


def instructions(store: Store, cluster: str) -> Autoscaling:
    """What the autoscaler of a cluster is told; its defaults where that is nothing."""
    found = store.get(_CLOUD, _id(cluster))
    return Autoscaling(**found.state) if found else Autoscaling()


def _id(cluster: str) -> str:
    return f"{cluster}/autoscaler"
