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

from ebbtide.declaration.catalog import CloudKind

from ..immutable_inputs import NEW_POOL_BESIDE, ImmutableInputs

POOLS: Final = ImmutableInputs(
    cloud=CloudKind.AKS,
    name="agentPoolName",
    resource="azure-native:containerservice:AgentPool",
    own={"vnetSubnetID": "cloud.network", "osType": "", "type": "", "enableNodePublicIP": ""},
    noted=(
        "enableEncryptionAtHost",
        "enableUltraSSD",
        "hostGroupID",
        "kubeletConfig",
        "linuxOSConfig",
        "nodePublicIPPrefixID",
        "podSubnetID",
        "proximityPlacementGroupID",
    ),
    unset={
        "scaleSetPriority": "Regular",
        "scaleSetEvictionPolicy": "Delete",
        "spotMaxPrice": -1,
        "kubeletDiskType": "OS",
        "gpuProfile": {"driver": "Install"},
        "osType": "Linux",
        "type": "VirtualMachineScaleSets",
        "enableNodePublicIP": False,
        "enableEncryptionAtHost": False,
        "enableUltraSSD": False,
    },
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
