"""Labels of nodes, which select a pool, and taints, which repel other pods, of the clouds and of Ebbtide.

Sources: GKE docs, spot-vms, provisioningrequest and gpus; azure-aks-docs, spot-node-pool, use-system-pools,
use-nvidia-gpu and use-amd-gpus (2026).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ebbtide.declaration.catalog.accelerators import NVIDIA, is_tpu, one_host_topology, resource_name, vendor
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS, FALLBACK, POOL_LABEL
from ebbtide.declaration.catalog.machines import AMD64, ARCHITECTURE, architecture
from ebbtide.declaration.model.capacity import CapacityKind, Queued, Spot
from ebbtide.declaration.model.pool import Accelerator, Pool, Taint, TaintEffect
from ebbtide.values.cloud_kind import CloudKind

NODE_POOL: Final = "cloud.google.com/gke-nodepool"
"""Key of GKE's label with the node pool's name (GKE docs, node-pools, 2026)."""

AGENT_POOL: Final = "kubernetes.azure.com/agentpool"
"""Key of AKS's label with the node pool's name (azure-aks-docs, use-labels, 2026). The cluster autoscaler
predicts it for a pool at zero nodes, together with its older form `agentpool` (kubernetes/autoscaler,
cloudprovider/azure/azure_template.go, 2026)."""

MODE: Final = "kubernetes.azure.com/mode"
SYSTEM_ONLY: Final = Taint(key="CriticalAddonsOnly", value="true")

_GKE_SPOT = "cloud.google.com/gke-spot"
_GKE_PREEMPTIBLE = "cloud.google.com/gke-preemptible"
_GKE_FLEX_START = "cloud.google.com/gke-flex-start"
_GKE_QUEUED = "cloud.google.com/gke-queued"
_GKE_CAPACITY: Final[Mapping[CapacityKind, tuple[str, str]]] = {
    "on-demand": ("standard", ""),
    "spot": ("spot", _GKE_SPOT),
    "preemptible": ("preemptible", _GKE_PREEMPTIBLE),
    "flex-start": ("flex-start", _GKE_FLEX_START),
    "queued": ("flex-start", _GKE_QUEUED),
    "reservation": ("standard", ""),
}
"""Value of GKE's label for provisioning, and GKE's label of its own, by capacity type; empty for none."""
_GKE_ACCELERATOR = "cloud.google.com/gke-accelerator"
_GKE_PROVISIONING = "cloud.google.com/gke-provisioning"
_TPU_ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
_TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
_AKS_SPOT = "kubernetes.azure.com/scalesetpriority"
_AKS_ACCELERATOR = "accelerator"


@dataclass(frozen=True, slots=True)
class LabelsAndTaints:
    """Labels and taints of a pool's nodes.

    Attributes:
        labels: labels that the node pool declares.
        cloud_labels: labels that the cloud adds.
        taints: taints that the node pool declares.
        cloud_taints: taints that the cloud adds.
        distinguishing: keys of the labels that distinguish the pool's nodes from all others.
        pool_label: key of the cloud's label with the pool's name; empty if pods must not select it.
    """

    labels: Mapping[str, str]
    cloud_labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    cloud_taints: tuple[Taint, ...]
    distinguishing: tuple[str, ...]
    pool_label: str

    @property
    def all_labels(self) -> dict[str, str]:
        """Every label of a node."""
        return {**self.cloud_labels, **self.labels}

    @property
    def all_taints(self) -> tuple[Taint, ...]:
        """Every distinct taint of a node."""
        return tuple(dict.fromkeys((*self.taints, *self.cloud_taints)))

    @property
    def repelling(self) -> tuple[Taint, ...]:
        """The taints of a node that keep pods without a toleration off."""
        soft = TaintEffect.PREFER_NO_SCHEDULE
        return tuple(taint for taint in self.all_taints if taint.effect is not soft)


def labels_and_taints(pool: Pool, cloud: CloudKind) -> LabelsAndTaints:
    """Return the labels and taints of a complete pool's nodes."""
    shared = pool.labels.get(FALLBACK)
    own = Taint(key=FALLBACK, value=shared) if shared else Taint(key=POOL_LABEL, value=pool.name)
    processors = architecture(cloud, pool.machine.type) if pool.machine else AMD64
    # Every node has the label; only that of Arm nodes selects a pool.
    arm = {ARCHITECTURE: processors} if processors != AMD64 else {}
    match cloud:
        case CloudKind.GKE:
            return _on_gke(pool, own, arm)
        case CloudKind.AKS:
            return _on_aks(pool, own, arm)


def _on_gke(pool: Pool, own: Taint, arm: dict[str, str]) -> LabelsAndTaints:
    # GKE does not label queued nodes itself (cluster-toolkit adds the label, too).
    queued = {_GKE_QUEUED: "true"} if isinstance(pool.capacity, Queued) else {}
    hardware = {resource_name(pool.accelerator.type): "present"} if pool.accelerator else {}
    return LabelsAndTaints(
        labels={POOL_LABEL: pool.name, **queued, **pool.labels},
        cloud_labels=_gke_labels(pool) | arm,
        taints=_gke_taints(pool, own),
        # Arm nodes: GKE docs, prepare-arm-workloads-for-deployment (2026).
        cloud_taints=tuple(Taint(key=key, value=value) for key, value in (queued | hardware | arm).items()),
        distinguishing=(POOL_LABEL, *_gke_distinguishing(pool), *arm),
        # Only a ComputeClass selects the nodes of its pools, see `_gke_distinguishing`.
        pool_label="" if _class_taints(pool) else NODE_POOL,
    )


def _on_aks(pool: Pool, own: Taint, arm: dict[str, str]) -> LabelsAndTaints:
    # AKS adds the spot label and taint itself; if they are not declared, every later preview replaces the
    # pool (terraform-provider-azurerm#25615).
    spot = {_AKS_SPOT: "spot"} if isinstance(pool.capacity, Spot) else {}
    spot_taints = tuple(Taint(key=key, value=value) for key, value in spot.items())
    kind = pool.accelerator.type if pool.accelerator else ""
    accelerator = {_AKS_ACCELERATOR: vendor(kind) or NVIDIA} if kind else {}
    if pool.taints is not None:
        taints = tuple(dict.fromkeys((*pool.taints, *spot_taints)))
    elif pool.is_system:
        taints = (SYSTEM_ONLY,)
    else:
        # AKS does not taint GPU and on-demand nodes.
        gpu = (Taint(key=resource_name(kind), value="present"),) if kind else ()
        taints = (*(spot_taints or (own,)), *gpu)
    return LabelsAndTaints(
        labels={POOL_LABEL: pool.name, **spot, **pool.labels},
        cloud_labels={
            AGENT_POOL: pool.name,
            MODE: pool.role.value if pool.is_system else "user",
            **accelerator,
            **arm,
        },
        taints=taints,
        cloud_taints=spot_taints,  # none on Arm nodes (azure-aks-docs use-arm64-vms.md, 2025-02)
        distinguishing=(POOL_LABEL, *spot, *accelerator, *arm),
        pool_label=AGENT_POOL,
    )


def _gke_taints(pool: Pool, own: Taint) -> tuple[Taint, ...]:
    """Return the taints to declare: GKE does not taint spot and preemptible nodes of manually created pools.

    A pool of a ComputeClass has the class's taint in any case: GKE associates the pool with the class by that
    taint and the label (GKE docs, about-custom-compute-classes, 2026). A queued pool has GKE's own taint. A
    system pool has none: GKE's system pods do not tolerate Ebbtide's taints.
    """
    of_class = _class_taints(pool)
    if pool.taints is not None:
        return tuple(dict.fromkeys((*pool.taints, *of_class)))
    if pool.is_system or isinstance(pool.capacity, Queued):
        return ()
    if of_class:
        return of_class
    key = _GKE_CAPACITY[pool.capacity.kind][1]
    return (Taint(key=key, value="true"),) if key else (own,)


def _class_taints(pool: Pool) -> tuple[Taint, ...]:
    name = pool.labels.get(COMPUTE_CLASS)
    if not name or pool.is_system or isinstance(pool.capacity, Queued):
        return ()
    return (Taint(key=COMPUTE_CLASS, value=name),)


def _gke_labels(pool: Pool) -> dict[str, str]:
    """Return the labels that GKE adds."""
    labels = {NODE_POOL: pool.name, _GKE_PROVISIONING: _GKE_CAPACITY[pool.capacity.kind][0]}
    if isinstance(pool.capacity, Queued):
        labels[_GKE_FLEX_START] = "true"
    elif key := _GKE_CAPACITY[pool.capacity.kind][1]:
        labels[key] = "true"
    # GKE docs, local-ssd and local-ssd-raw (2026).
    if pool.ephemeral_storage_local_ssd_config is not None:
        labels["cloud.google.com/gke-ephemeral-storage-local-ssd"] = "true"
    if pool.local_nvme_ssd_block_config is not None:
        labels["cloud.google.com/gke-local-nvme-ssd"] = "true"
    if pool.accelerator is not None:
        labels[_TPU_ACCELERATOR if _is_tpu(pool) else _GKE_ACCELERATOR] = pool.accelerator.type
        labels |= _sharing_labels(pool.accelerator)
    if topology := _topology(pool):
        labels[_TPU_TOPOLOGY] = topology
    return labels


def _sharing_labels(accelerator: Accelerator) -> dict[str, str]:
    """Return the labels of nodes with shared GPUs (GoogleCloudPlatform/cluster-autoscaler@7d250507,
    pkg/cloudprovider/gke/labels/system_labels.go)."""
    labels: dict[str, str] = {}
    if accelerator.gpu_partition_size is not None:
        labels["cloud.google.com/gke-gpu-partition-size"] = accelerator.gpu_partition_size
    if (sharing := accelerator.gpu_sharing_config) is not None:
        labels["cloud.google.com/gke-gpu-sharing-strategy"] = sharing.gpu_sharing_strategy
        labels["cloud.google.com/gke-max-shared-clients-per-gpu"] = str(sharing.max_shared_clients_per_gpu)
    return labels


def _gke_distinguishing(pool: Pool) -> tuple[str, ...]:
    """Return the keys of the labels that distinguish these nodes from others, besides the pool label.

    For a pool of a ComputeClass, only the class: GKE rejects pods that request both a class and spot nodes
    (GKE docs, about-custom-compute-classes, 2026).
    """
    if _class_taints(pool):
        return (COMPUTE_CLASS,)
    keys = [_GKE_CAPACITY[pool.capacity.kind][1]]
    if pool.accelerator is not None:
        keys.append(_TPU_ACCELERATOR if _is_tpu(pool) else _GKE_ACCELERATOR)
    if _topology(pool):
        keys.append(_TPU_TOPOLOGY)
    return tuple(key for key in keys if key)


def _is_tpu(pool: Pool) -> bool:
    return pool.accelerator is not None and is_tpu(pool.accelerator.type)


def _topology(pool: Pool) -> str:
    """Return the topology of a pool's TPU slices, by default that of one node; empty for other pools."""
    if pool.accelerator is None or not _is_tpu(pool):
        return ""
    return pool.tpu_topology or one_host_topology(pool.accelerator.type, pool.accelerator.count)
