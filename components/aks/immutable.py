"""Immutable properties of AKS node pools.

Sources: azure-aks-docs `resize-node-pool` (2025-08), `use-system-pools` (2026-04), `spot-node-pool`,
`use-capacity-reservation-groups` (2026-05); the properties whose change makes terraform-provider-azurerm
replace a pool (`kubernetes_cluster_node_pool_resource.go`, 2026-08) and that cluster-api-provider-azure
rejects (`azuremanagedmachinepool_webhook.go`); the error is `PropertyChangeNotAllowed`
(pulumi-azure-native#959). Changing the machine, the reservation or the zones in place is in preview for some
pools, with API versions that azure-native 3.29 does not use. Node image, labels, taints, limits, version,
mode and upgrade settings can change.
"""

from typing import Final

from ..immutable_inputs import NEW_POOL_BESIDE, ImmutableInput, ImmutableInputs

_ROWS: Final = (
    ImmutableInput("vmSize", "vm_size", "machine"),
    ImmutableInput("scaleSetPriority", "scale_set_priority", "capacity", unset="Regular"),
    ImmutableInput(
        "scaleSetEvictionPolicy", "scale_set_eviction_policy", "capacity.evictionPolicy", unset="Delete"
    ),
    ImmutableInput("spotMaxPrice", "spot_max_price", "capacity.maxPrice", unset=-1),
    ImmutableInput("capacityReservationGroupID", "capacity_reservation_group_id", "capacity.name"),
    ImmutableInput("availabilityZones", "availability_zones", "zones"),
    ImmutableInput("osDiskSizeGB", "os_disk_size_gb", "disk.sizeGib"),
    ImmutableInput("osDiskType", "os_disk_type", "disk.type"),
    ImmutableInput("kubeletDiskType", "kubelet_disk_type", "disk.kubeletDiskType", unset="OS"),
    ImmutableInput("maxPods", "max_pods", "maxPodsPerNode"),
    ImmutableInput("gpuProfile", "gpu_profile", "accelerator.driver", unset={"driver": "Install"}),
    ImmutableInput("gpuInstanceProfile", "gpu_instance_profile", "accelerator.gpuInstanceProfile"),
    ImmutableInput("vnetSubnetID", "vnet_subnet_id", "cloud.network"),
    ImmutableInput("osType", "os_type", "", unset="Linux"),
    ImmutableInput("type", "type", "", unset="VirtualMachineScaleSets"),
    ImmutableInput("enableNodePublicIP", "enable_node_public_ip", "", unset=False),
    ImmutableInput(
        "enableEncryptionAtHost", "enable_encryption_at_host", "overrides.enableEncryptionAtHost", unset=False
    ),
    ImmutableInput("enableUltraSSD", "enable_ultra_ssd", "overrides.enableUltraSSD", unset=False),
    ImmutableInput("kubeletConfig", "kubelet_config", "overrides.kubeletConfig"),
    ImmutableInput("linuxOSConfig", "linux_os_config", "overrides.linuxOSConfig"),
    ImmutableInput("kubeletDiskType", "kubelet_disk_type", "overrides.kubeletDiskType"),
    ImmutableInput("podSubnetID", "pod_subnet_id", "overrides.podSubnetID"),
    ImmutableInput("nodePublicIPPrefixID", "node_public_ip_prefix_id", "overrides.nodePublicIPPrefixID"),
    ImmutableInput(
        "proximityPlacementGroupID", "proximity_placement_group_id", "overrides.proximityPlacementGroupID"
    ),
    ImmutableInput("hostGroupID", "host_group_id", "overrides.hostGroupID"),
)

POOLS: Final = ImmutableInputs(
    cloud="AKS",
    name="agentPoolName",
    resource="azure-native:containerservice:AgentPool",
    rows=_ROWS,
    exceptions={},
    constants={},
    # Properties of a pool that exist only for spot.
    implied=((("scaleSetPriority",), ("scaleSetEvictionPolicy", "spotMaxPrice")),),
    work_fix=NEW_POOL_BESIDE,
    system_fix="Create a second system pool with the new settings (`az aks nodepool add --mode System --name "
    "NEW ...`: AKS cannot add one through the cluster), declare the system pool as NEW, and after the "
    "update remove the old one (`az aks nodepool delete --name {name} ...`).",
)
"""Immutable inputs of a node pool. In azure-native 3.29 a change of the machine is a replacement, which
deletes the pool first; it sends any other change, and AKS responds with PropertyChangeNotAllowed
(`provider/pkg/gen/replacement.go`, `provider.go`)."""
