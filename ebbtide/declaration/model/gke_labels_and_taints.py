"""Labels and taints of GKE nodes, GKE's and Ebbtide's (GKE docs: spot-vms, provisioningrequest, gpus;
2026)."""

from typing import assert_never

from ebbtide.declaration.catalog import (
    AMD64,
    ARCHITECTURE,
    COMPUTE_CLASS,
    is_tpu,
    one_host_topology,
    resource_name,
)
from ebbtide.declaration.model.capacity import FlexStart, OnDemand, Preemptible, Queued, Reservation, Spot
from ebbtide.declaration.model.pool import Accelerator, Pool, Taint

SPOT = "cloud.google.com/gke-spot"
PREEMPTIBLE = "cloud.google.com/gke-preemptible"
FLEX_START = "cloud.google.com/gke-flex-start"
QUEUED = "cloud.google.com/gke-queued"
ACCELERATOR = "cloud.google.com/gke-accelerator"
TPU_ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
PROVISIONING = "cloud.google.com/gke-provisioning"
NODE_POOL = "cloud.google.com/gke-nodepool"


def _is_tpu(pool: Pool) -> bool:
    return pool.accelerator is not None and is_tpu(pool.accelerator.type)


def _topology(pool: Pool) -> str:
    """Return the topology of a pool's TPU slices, by default that of one node; empty for other pools."""
    if pool.accelerator is None or not _is_tpu(pool):
        return ""
    return pool.tpu_topology or one_host_topology(pool.accelerator.type, pool.accelerator.count)


def _capacity_label(pool: Pool) -> str | None:
    """Return GKE's label of a capacity type; None if it has none."""
    match pool.capacity:
        case Spot():
            return SPOT
        case Preemptible():
            return PREEMPTIBLE
        case FlexStart():
            return FLEX_START
        case Queued():
            return QUEUED
        case OnDemand() | Reservation():
            return None
        case _:
            assert_never(pool.capacity)


def _provisioning(pool: Pool) -> str:
    match pool.capacity:
        case Spot():
            return "spot"
        case Preemptible():
            return "preemptible"
        case FlexStart() | Queued():
            return "flex-start"
        case OnDemand() | Reservation():
            return "standard"
        case _:
            assert_never(pool.capacity)


def labels(pool: Pool) -> dict[str, str]:
    """Return the labels to declare: GKE does not label queued nodes itself (cluster-toolkit adds the label,
    too)."""
    return {QUEUED: "true"} if isinstance(pool.capacity, Queued) else {}


def cloud_labels(pool: Pool) -> dict[str, str]:
    """Return the labels that GKE adds."""
    labels = {NODE_POOL: pool.name, PROVISIONING: _provisioning(pool)}
    if isinstance(pool.capacity, Queued):
        labels[FLEX_START] = "true"
    elif (key := _capacity_label(pool)) is not None:
        labels[key] = "true"
    # GKE docs, local-ssd and local-ssd-raw (2026).
    if pool.ephemeral_storage_local_ssd_config is not None:
        labels["cloud.google.com/gke-ephemeral-storage-local-ssd"] = "true"
    if pool.local_nvme_ssd_block_config is not None:
        labels["cloud.google.com/gke-local-nvme-ssd"] = "true"
    if pool.accelerator is not None:
        labels[TPU_ACCELERATOR if _is_tpu(pool) else ACCELERATOR] = pool.accelerator.type
        labels |= _sharing_labels(pool.accelerator)
    if topology := _topology(pool):
        labels[TPU_TOPOLOGY] = topology
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


def taints(pool: Pool, own: Taint) -> tuple[Taint, ...]:
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
    key = _capacity_label(pool)
    return (Taint(key=key, value="true"),) if key else (own,)


def _class_taints(pool: Pool) -> tuple[Taint, ...]:
    name = pool.labels.get(COMPUTE_CLASS)
    if not name or pool.is_system or isinstance(pool.capacity, Queued):
        return ()
    return (Taint(key=COMPUTE_CLASS, value=name),)


def cloud_taints(pool: Pool, architecture: str) -> tuple[Taint, ...]:
    """Return the taints that GKE adds: on nodes with accelerators, on queued nodes, and on Arm nodes (GKE
    docs, prepare-arm-workloads-for-deployment, 2026)."""
    taints: tuple[Taint, ...] = ()
    if isinstance(pool.capacity, Queued):
        taints += (Taint(key=QUEUED, value="true"),)
    if pool.accelerator is not None:
        taints += (Taint(key=resource_name(pool.accelerator.type), value="present"),)
    if architecture != AMD64:
        taints += (Taint(key=ARCHITECTURE, value=architecture),)
    return taints


def pool_label(pool: Pool) -> str:
    """Return the key of GKE's label with the node pool's name (GKE docs, node-pools, 2026).

    Empty for a pool of a ComputeClass: only the class selects its nodes, see `distinguishing`.
    """
    return "" if _class_taints(pool) else NODE_POOL


def distinguishing(pool: Pool) -> tuple[str, ...]:
    """Return the keys of the labels that distinguish these nodes from others, besides the pool label.

    For a pool of a ComputeClass, only the class: GKE rejects pods that request both a class and spot nodes
    (GKE docs, about-custom-compute-classes, 2026).
    """
    if _class_taints(pool):
        return (COMPUTE_CLASS,)
    keys = [_capacity_label(pool)]
    if pool.accelerator is not None:
        keys.append(TPU_ACCELERATOR if _is_tpu(pool) else ACCELERATOR)
    if _topology(pool):
        keys.append(TPU_TOPOLOGY)
    return tuple(key for key in keys if key)
