"""Inputs of an AKS agent pool from a declared pool, for separate pools and for the cluster's inline pool."""

from typing import NotRequired, TypedDict, assert_never

import pulumi
from pulumi_azure_native import containerservice

from ebbtide.declaration.model import FlexStart, OnDemand, Pool, Preemptible, Queued, Reservation, Spot
from ebbtide.declaration.model.resolved_pool import ResolvedPool

from ..overrides import without_none
from ..ownership import Labels

_IMAGES = {"ubuntu": "Ubuntu", "azure-linux": "AzureLinux"}
_DISKS = {"managed": "Managed", "ephemeral": "Ephemeral"}


class PoolInputs(TypedDict):
    """Inputs that `AgentPool` and the cluster's inline pools share, under the SDK's names."""

    mode: str
    type: str
    vm_size: NotRequired[str]
    os_type: str
    os_sku: str
    os_disk_size_gb: NotRequired[int]
    os_disk_type: NotRequired[str]
    kubelet_disk_type: NotRequired[str]
    enable_auto_scaling: bool
    min_count: NotRequired[int]
    max_count: NotRequired[int]
    count: NotRequired[int]
    availability_zones: NotRequired[list[str]]
    scale_down_mode: str
    scale_set_priority: NotRequired[str]
    scale_set_eviction_policy: NotRequired[str]
    spot_max_price: NotRequired[float]
    capacity_reservation_group_id: NotRequired[str]
    gpu_profile: NotRequired[containerservice.GPUProfileArgsDict]
    gpu_instance_profile: NotRequired[str]
    enable_node_public_ip: bool
    vnet_subnet_id: NotRequired[pulumi.Input[str]]
    max_pods: NotRequired[int]
    node_labels: dict[str, str]
    node_taints: NotRequired[list[str]]
    orchestrator_version: NotRequired[str]
    upgrade_settings: NotRequired[containerservice.AgentPoolUpgradeSettingsArgsDict]
    tags: dict[str, pulumi.Input[str]]


class _CapacityInputs(TypedDict, total=False):
    scale_set_priority: str
    scale_set_eviction_policy: str
    spot_max_price: float
    capacity_reservation_group_id: str


class _CountInputs(TypedDict):
    enable_auto_scaling: bool
    min_count: NotRequired[int]
    max_count: NotRequired[int]
    count: NotRequired[int]


def pool_inputs(pool: ResolvedPool, *, subnet: pulumi.Input[str] | None, labels: Labels) -> PoolInputs:
    """Return the inputs of an agent pool.

    Args:
        pool: the pool.
        subnet: resource id of the nodes' subnet; None for AKS's own.
        labels: billing labels, which Azure calls tags.
    """
    derived = pool.labels_and_taints
    inputs: PoolInputs = {
        "mode": "System" if pool.is_system else "User",
        # Without it, AKS requires a count when autoscaling is switched on later (pulumi-azure-native#2943).
        "type": "VirtualMachineScaleSets",
        "vm_size": pool.machine.type if pool.machine else None,
        "os_type": "Linux",
        "os_sku": _IMAGES[pool.image or "ubuntu"],
        "os_disk_size_gb": pool.disk.size_gib,
        "os_disk_type": _DISKS[pool.disk.type or "managed"],
        "kubelet_disk_type": pool.disk.kubelet_disk_type,
        **_count(pool),
        "availability_zones": list(pool.zones) or None,
        "scale_down_mode": "Delete",
        **_capacity(pool),
        "gpu_profile": _driver(pool),
        "gpu_instance_profile": pool.accelerator.gpu_instance_profile if pool.accelerator else None,
        "enable_node_public_ip": False,
        "vnet_subnet_id": subnet,
        "max_pods": pool.max_pods_per_node,
        "node_labels": dict(derived.labels),
        "node_taints": [str(taint) for taint in derived.taints] or None,
        "orchestrator_version": pool.site.kubernetes_version,
        "upgrade_settings": _upgrade(pool),
        "tags": dict(labels),
    }  # pyright: ignore[reportAssignmentType] # `without_none` removes what is None
    return without_none(inputs)


def _count(pool: Pool) -> _CountInputs:
    """Return limits for the autoscaler, or a fixed count; never both.

    An update is a PUT of the whole pool: with a count, it would remove the nodes that the autoscaler has
    added. Without one, AKS keeps the current count and starts with the minimum, also for inline pools
    (Azure/AKS#1627, 2020-05; Azure/ARO-HCP#3659, 2025-12, removes it from an inline system pool). azurerm
    always sends a count because an earlier client required it (terraform-provider-azurerm#6094).
    """
    if pool.nodes.count is not None:
        return {"enable_auto_scaling": False, "count": pool.nodes.count}
    limits: _CountInputs = {
        "enable_auto_scaling": True,
        "min_count": pool.nodes.min or 0,
        "max_count": pool.nodes.max or pool.nodes.min or 0,
    }
    return limits


def _capacity(pool: Pool) -> _CapacityInputs:
    """Return the inputs of the capacity type; priority and price are immutable.

    Raises:
        ValueError: the capacity type exists only on GKE; the rules reject it earlier.
    """
    match pool.capacity:
        case OnDemand():
            return {}
        case Spot(eviction_policy=policy, max_price=price):
            return {
                "scale_set_priority": "Spot",
                # A deallocated machine still counts against the quota, and the autoscaler does not fall back
                # from its pool to another (Azure/AKS#5589).
                "scale_set_eviction_policy": policy or "Delete",
                "spot_max_price": -1 if price is None else price,
            }
        case Reservation(name=group):
            return {"capacity_reservation_group_id": group} if group else {}
        case Preemptible() | FlexStart() | Queued():
            raise ValueError(f"AKS has no {pool.capacity.kind} capacity.")
        case _:
            assert_never(pool.capacity)


def _driver(pool: Pool) -> containerservice.GPUProfileArgsDict | None:
    """Return the GPU profile: whether AKS installs the NVIDIA driver. The device plugin is always an
    add-on."""
    if pool.accelerator is None:
        return None
    return {"driver": "None" if pool.accelerator.driver == "none" else "Install"}


def _upgrade(pool: Pool) -> containerservice.AgentPoolUpgradeSettingsArgsDict | None:
    """Return the upgrade settings; None for spot, which has no surge: a declared surge would appear as a
    change in every preview (terraform-provider-azurerm#29318)."""
    if pool.upgrade is None or isinstance(pool.capacity, Spot):
        return None
    surge, unavailable = pool.upgrade.max_surge, pool.upgrade.max_unavailable
    return without_none(
        {
            "max_surge": None if surge is None else str(surge),
            "max_unavailable": None if unavailable is None else str(unavailable),
        }
    )
