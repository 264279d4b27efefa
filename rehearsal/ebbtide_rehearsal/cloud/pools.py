"""Node pools and the settings of the autoscaler, as the clouds' APIs register them for the controllers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, Self

from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.declaration.catalog.accelerators import resource_name
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.store import Resource, Store

_SETTINGS_CLOUD: Final = "nodes"
_SETTINGS_TYPE: Final = "autoscaler"

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
    store.put(Resource(_SETTINGS_CLOUD, _id(cluster), _SETTINGS_TYPE, state=asdict(autoscaling)))


def delete_settings(store: Store, cluster: str) -> None:
    """Delete the settings of a deleted cluster."""
    store.remove(_SETTINGS_CLOUD, _id(cluster))


def settings_of(store: Store, cluster: str) -> Autoscaling:
    """Return the settings of a cluster's autoscaler; the defaults if none were set."""
    resource = store.get(_SETTINGS_CLOUD, _id(cluster))
    return Autoscaling(**resource.state) if resource else Autoscaling()


def _id(cluster: str) -> str:
    return f"{cluster}/autoscaler"


_CLOUD: Final = "nodes"
_TYPE: Final = "node-pool"
_STOPPED: Final = "stopped-node-pool"

NO_ZONE: Final = "0"
"""Zone label of nodes without a zone: Azure uses a fault domain (cloud-provider-azure docs,
topics/availability-zones)."""


@dataclass(frozen=True, slots=True)
class NodePool:
    """A node pool.

    Attributes:
        cluster: id of the cluster in `Clusters`.
        name: name, unique in its cluster.
        machine: machine type.
        zones: zones that nodes are spread over.
        labels: labels of each node: requested ones and those that the cloud adds, without those for its name
            or zone.
        taints: taints of each node, requested or added by the cloud.
        allocatable: allocatable resources of each node as Kubernetes quantities, without accelerators.
        accelerator: type and count of each node's accelerators; None for none.
        accelerator_resource: their resource name, such as `nvidia.com/gpu`; empty for none.
        driver_installed: True if the cloud itself installs the accelerators' driver and device plugin;
            otherwise they are allocatable once DaemonSets that install them run on the node.
        minimum: minimum node count, over all zones.
        maximum: maximum node count, over all zones.
        initial: initial node count, over all zones.
        autoscaled: True if the cloud's autoscaler sizes it; otherwise it stays at `initial`.
        hourly: price of a node, USD per hour; None if a part of it is unknown.
        max_run_seconds: lifetime after which the cloud removes a node; None for no limit.
        deallocates: True if an evicted node is stopped, not deleted (AKS, eviction policy `Deallocate`).
        shares: amount of the accelerator resource per accelerator.
        together: number of nodes of a TPU slice, which are created and deleted together.
        ssd_gb: size of each node's boot disk, if it counts towards the quota of SSD disks.
        reserved: begin and end of the reservation of its nodes, in simulated seconds, outside of which the
            cloud has none; None for no period.
    """

    cluster: str
    name: str
    cloud: Literal["gke", "aks"]
    machine: str
    capacity: CapacityKind
    region: str
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...]
    allocatable: Mapping[str, str]
    accelerator: tuple[str, int] | None
    accelerator_resource: str
    driver_installed: bool
    minimum: int
    maximum: int
    initial: int
    autoscaled: bool
    hourly: float | None
    max_run_seconds: int | None = None
    deallocates: bool = False
    shares: int = 1
    together: int = 1
    ssd_gb: int = 0
    reserved: tuple[float, float] | None = None

    @property
    def accelerators(self) -> dict[str, str]:
        """Accelerators of a node as allocatable resources, once their driver runs."""
        if self.accelerator is None:
            return {}
        return {self.accelerator_resource: str(self.accelerator[1] * self.shares)}

    @property
    def id(self) -> str:
        """Id, unique among the pools of all clusters."""
        return f"{self.cluster}/{self.name}"

    def having(self, **changes: Any) -> Self:
        """Return the pool with some fields changed."""
        return replace(self, **changes)


def node_pool(
    pool: RecordedPool,
    *,
    cluster: str,
    region: str,
    zones: tuple[str, ...],
    initial: int,
    default_run_seconds: int | None = None,
    **others: Any,
) -> NodePool:
    """Return a recorded pool for the controllers of nodes.

    Args:
        cluster: id of its cluster.
        initial: initial node count, over all zones.
        default_run_seconds: maximum lifetime of a node of a pool without its own; None for no limit.
        others: what the cloud decides: labels, taints, allocatable resources, prices, drivers.
    """
    accelerator = (pool.accelerator.type, pool.accelerator.count) if pool.accelerator else None
    autoscaled = pool.nodes.count is None
    return NodePool(
        cluster=cluster,
        name=pool.name,
        cloud=pool.site.cloud.value,
        machine=pool.machine_type,
        capacity=pool.capacity.kind,
        region=region,
        zones=zones,
        accelerator=accelerator,
        accelerator_resource=resource_name(accelerator[0]) if accelerator else "",
        minimum=pool.idle_nodes if autoscaled else initial,
        maximum=pool.max_nodes if autoscaled else initial,
        initial=initial,
        autoscaled=autoscaled,
        shares=pool.shares,
        together=pool.slice_nodes,
        max_run_seconds=pool.max_run_seconds or default_run_seconds,
        **others,
    )


def register(store: Store, pool: NodePool) -> None:
    """Register a node pool with the controllers, or update it."""
    store.put(Resource(_CLOUD, pool.id, _TYPE, state=asdict(pool)))


def forget(store: Store, cluster: str, name: str) -> None:
    """Remove a node pool: its nodes are drained and removed."""
    store.remove(_CLOUD, f"{cluster}/{name}")


def stop(store: Store, cluster: str) -> None:
    """Remove the nodes of all pools of a cluster, until `start`."""
    for pool in pools(store, cluster):
        store.put(Resource(_CLOUD, f"{pool.id}/stopped", _STOPPED, state=asdict(pool)))
        forget(store, cluster, pool.name)


def is_stopped(store: Store, cluster: str) -> bool:
    """Return whether a cluster is stopped, including its control plane."""
    return any(_pool(resource.state).cluster == cluster for resource in store.resources(_CLOUD, _STOPPED))


def start(store: Store, cluster: str) -> None:
    """Restart the pools of a stopped cluster with their initial nodes."""
    for resource in store.resources(_CLOUD, _STOPPED):
        pool = _pool(resource.state)
        if pool.cluster == cluster:
            store.remove(_CLOUD, resource.id)
            register(store, pool)


def pools(store: Store, cluster: str) -> list[NodePool]:
    """Return the node pools of a cluster, by name."""
    return [pool for pool in all_pools(store) if pool.cluster == cluster]


def all_pools(store: Store) -> list[NodePool]:
    """Return the node pools of all clusters, by id."""
    return [_pool(resource.state) for resource in store.resources(_CLOUD, _TYPE)]


def _pool(state: Mapping[str, Any]) -> NodePool:
    read: dict[str, Any] = {
        **state,
        "zones": tuple(state["zones"]),
        "taints": tuple(NodeTaint(**taint) for taint in state["taints"]),
        "accelerator": tuple(state["accelerator"]) if state["accelerator"] else None,
        "reserved": tuple(state["reserved"]) if state["reserved"] else None,
    }
    return NodePool(**read)
