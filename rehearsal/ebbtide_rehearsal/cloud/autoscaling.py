"""Settings of a cluster's autoscaler, set by the cloud's API and read in every round of the node pools'
controllers."""

from dataclasses import asdict, dataclass
from typing import Final, Literal

from ebbtide_rehearsal.cloud.store import Resource, Store

_CLOUD: Final = "nodes"
_TYPE: Final = "autoscaler"

Expander = Literal["random", "most-pods", "least-waste", "priority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """Settings of a cluster's autoscaler, with their defaults; times in simulated seconds.

    The defaults are those of the cluster autoscaler, which are also AKS' (azure-aks-docs, cluster-autoscaler,
    2026-07-30). GKE publishes no numbers for its two profiles, and `OPTIMIZE_UTILIZATION` is not a setting of
    the cluster autoscaler (kubernetes/autoscaler#2798): these defaults apply to both, so that nodes are not
    removed earlier than on GKE.

    Attributes:
        expander: chooses between node pools. GKE has its own.
        idle_seconds: time that a node is unneeded before its removal (`scale-down-unneeded-time`).
        delay_after_add_seconds: time without removals after a scale-up (`scale-down-delay-after-add`).
        utilization: maximum requested share of a node that may be removed
            (`scale-down-utilization-threshold`).
        daemons_count: whether pods of DaemonSets count towards the share (negation of
            `ignore-daemonsets-utilization`).
        eviction_seconds: time for the pods of a removed node to end (`max-graceful-termination-sec`).
        skip_local_storage: whether a pod with an emptyDir or hostPath keeps its node
            (`skip-nodes-with-local-storage`). Not on AKS, nor on GKE since 1.22.
        skip_system_pods: whether a pod of kube-system without a disruption budget keeps its node
            (`skip-nodes-with-system-pods`).
    """

    expander: Expander = "random"
    idle_seconds: float = 600
    delay_after_add_seconds: float = 600
    utilization: float = 0.5
    daemons_count: bool = True
    eviction_seconds: float = 600
    skip_local_storage: bool = False
    skip_system_pods: bool = True


def put_settings(store: Store, cluster: str, autoscaling: Autoscaling) -> None:
    """Set the autoscaler's settings for a cluster."""
    store.put(Resource(_CLOUD, _id(cluster), _TYPE, state=asdict(autoscaling)))


def delete_settings(store: Store, cluster: str) -> None:
    """Delete the settings of a deleted cluster."""
    store.remove(_CLOUD, _id(cluster))


def settings_of(store: Store, cluster: str) -> Autoscaling:
    """Return the settings of a cluster's autoscaler; the defaults if none were set."""
    resource = store.get(_CLOUD, _id(cluster))
    return Autoscaling(**resource.state) if resource else Autoscaling()


def _id(cluster: str) -> str:
    return f"{cluster}/autoscaler"
