"""Descriptions of AKS clusters, as the Azure CLI, Azure Resource Manager and Terraform print them, in the
shapes of public examples.

Written by hand from what the examples declare and what AKS fills in (azure-rest-api-specs,
Microsoft.ContainerService 2025-09-01; azure-aks-docs fb060abe, spot-node-pool, for the CLI's spelling); each
shape names its source.
"""

from collections.abc import Iterable
from typing import Any

from tests.unit.adopting.gke_shapes import Document, merged

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
_SPOT = "kubernetes.azure.com/scalesetpriority"


def cluster_id(group: str, name: str) -> str:
    """Return a cluster's id, with the group's letters as the CLI prints them."""
    return (
        f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{group}"
        f"/providers/Microsoft.ContainerService/managedClusters/{name}"
    )


def pool(name: str, machine: str, **changes: Any) -> Document:
    """Return an inline pool of `az aks show` with what AKS fills in."""
    defaults: Document = {
        "availabilityZones": None,
        "capacityReservationGroupId": None,
        "count": 1,
        "creationData": None,
        "currentOrchestratorVersion": "1.35.2",
        "eTag": "2d4f5a0c",
        "enableAutoScaling": False,
        "enableEncryptionAtHost": False,
        "enableFips": False,
        "enableNodePublicIp": False,
        "enableUltraSsd": False,
        "gpuInstanceProfile": None,
        "gpuProfile": None,
        "kubeletConfig": None,
        "kubeletDiskType": "OS",
        "linuxOsConfig": None,
        "maxCount": None,
        "maxPods": 250,
        "minCount": None,
        "mode": "User",
        "name": name,
        "networkProfile": {
            "allowedHostPorts": None,
            "applicationSecurityGroups": None,
            "nodePublicIpTags": None,
        },
        "nodeImageVersion": "AKSUbuntu-2404gen2containerd-202611.01.0",
        "nodeInitializationTaints": None,
        "nodeLabels": None,
        "nodeTaints": None,
        "orchestratorVersion": "1.35",
        "osDiskSizeGb": 128,
        "osDiskType": "Managed",
        "osSku": "Ubuntu",
        "osType": "Linux",
        "powerState": {"code": "Running"},
        "provisioningState": "Succeeded",
        "scaleDownMode": "Delete",
        "scaleSetEvictionPolicy": None,
        "scaleSetPriority": None,
        "securityProfile": {"enableSecureBoot": False, "enableVtpm": False, "sshAccess": "LocalUser"},
        "spotMaxPrice": None,
        "tags": None,
        "type": "VirtualMachineScaleSets",
        "upgradeSettings": {"drainTimeoutInMinutes": None, "maxSurge": "10%", "maxUnavailable": "0"},
        "vmSize": machine,
        "vnetSubnetId": None,
        "windowsProfile": None,
        "workloadRuntime": "OCIContainer",
    }
    return defaults | changes


def spot(name: str, machine: str, **changes: Any) -> Document:
    """Return a spot pool, with the label and the taint that AKS adds."""
    own: Document = {
        "enableAutoScaling": True,
        "nodeLabels": {_SPOT: "spot"},
        "nodeTaints": [f"{_SPOT}=spot:NoSchedule"],
        "scaleSetEvictionPolicy": "Delete",
        "scaleSetPriority": "Spot",
        "spotMaxPrice": -1.0,
        "upgradeSettings": {"maxSurge": None, "maxUnavailable": None},
    }
    return pool(name, machine, **own | changes)


def cluster(group: str, name: str, pools: Iterable[Document], **changes: Any) -> Document:
    """Return `az aks show` of a cluster with what AKS fills in for `az aks create` without options."""
    nodes = f"MC_{group}_{name}_eastus"
    defaults: Document = {
        "aadProfile": None,
        "addonProfiles": None,
        "agentPoolProfiles": list(pools),
        "apiServerAccessProfile": None,
        "autoScalerProfile": None,
        "autoUpgradeProfile": {"nodeOsUpgradeChannel": "NodeImage", "upgradeChannel": None},
        "azurePortalFqdn": f"{name}-1a2b.portal.hcp.eastus.azmk8s.io",
        "bootstrapProfile": {"artifactSource": "Direct", "containerRegistryId": None},
        "currentKubernetesVersion": "1.35.2",
        "disableLocalAccounts": False,
        "diskEncryptionSetId": None,
        "dnsPrefix": name,
        "eTag": "1f3e5d",
        "enableRbac": True,
        "fqdn": f"{name}-1a2b.hcp.eastus.azmk8s.io",
        "id": cluster_id(group, name),
        "identity": {
            "principalId": "22222222-2222-2222-2222-222222222222",
            "tenantId": "33333333-3333-3333-3333-333333333333",
            "type": "SystemAssigned",
            "userAssignedIdentities": None,
        },
        "identityProfile": {
            "kubeletidentity": {
                "clientId": "44444444-4444-4444-4444-444444444444",
                "objectId": "55555555-5555-5555-5555-555555555555",
                "resourceId": f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{nodes}/providers/"
                f"Microsoft.ManagedIdentity/userAssignedIdentities/{name}-agentpool",
            }
        },
        "kubernetesVersion": "1.35",
        "location": "eastus",
        "maxAgentPools": 100,
        "metricsProfile": {"costAnalysis": {"enabled": False}},
        "name": name,
        "networkProfile": {
            "dnsServiceIp": "10.0.0.10",
            "ipFamilies": ["IPv4"],
            "loadBalancerProfile": {
                "backendPoolType": "nodeIPConfiguration",
                "effectiveOutboundIPs": [{"id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{nodes}/ip"}],
                "managedOutboundIPs": {"count": 1, "countIpv6": None},
            },
            "loadBalancerSku": "standard",
            "networkDataplane": "azure",
            "networkPlugin": "azure",
            "networkPluginMode": "overlay",
            "networkPolicy": "none",
            "outboundType": "loadBalancer",
            "podCidr": "10.244.0.0/16",
            "podCidrs": ["10.244.0.0/16"],
            "serviceCidr": "10.0.0.0/16",
            "serviceCidrs": ["10.0.0.0/16"],
        },
        "nodeProvisioningProfile": {"defaultNodePools": "Auto", "mode": "Manual"},
        "nodeResourceGroup": nodes,
        "oidcIssuerProfile": {"enabled": False, "issuerUrl": None},
        "powerState": {"code": "Running"},
        "provisioningState": "Succeeded",
        "resourceGroup": group,
        "resourceUid": "6a1c",
        "securityProfile": {},
        "servicePrincipalProfile": {"clientId": "msi", "secret": None},
        "sku": {"name": "Base", "tier": "Free"},
        "storageProfile": {
            "blobCsiDriver": None,
            "diskCsiDriver": {"enabled": True},
            "fileCsiDriver": {"enabled": True},
            "snapshotController": {"enabled": True},
        },
        "supportPlan": "KubernetesOfficial",
        "systemData": None,
        "tags": None,
        "type": "Microsoft.ContainerService/ManagedClusters",
        "windowsProfile": {"adminUsername": "azureuser", "enableCsiProxy": True, "licenseType": None},
        "workloadAutoScalerProfile": {},
    }
    return merged(defaults, changes)


SPOT_DOCS = [
    cluster(
        "ml",
        "docs",
        [
            pool("nodepool1", "Standard_D4ds_v5", mode="System", count=3),
            spot("spotnodepool", "Standard_D4ds_v5", count=3, minCount=1, maxCount=3),
        ],
    )
]
"""azure-aks-docs fb060abe, spot-node-pool: a spot pool of one to three nodes on a default cluster."""

SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub"
    "/subnets/aks"
)
_IDENTITY = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.ManagedIdentity"
    "/userAssignedIdentities/aks"
)
_AUTOSCALER = {
    "balanceSimilarNodeGroups": "false",
    "daemonsetEvictionForEmptyNodes": False,
    "daemonsetEvictionForOccupiedNodes": True,
    "expander": "random",
    "ignoreDaemonsetsUtilization": False,
    "maxEmptyBulkDelete": "10",
    "maxGracefulTerminationSec": "600",
    "maxNodeProvisionTime": "15m",
    "maxTotalUnreadyPercentage": "45",
    "newPodScaleUpDelay": "0s",
    "okTotalUnreadyCount": "3",
    "scaleDownDelayAfterAdd": "10m",
    "scaleDownDelayAfterDelete": "10s",
    "scaleDownDelayAfterFailure": "3m",
    "scaleDownUnneededTime": "10m",
    "scaleDownUnreadyTime": "20m",
    "scaleDownUtilizationThreshold": "0.5",
    "scanInterval": "10s",
    "skipNodesWithLocalStorage": "false",
    "skipNodesWithSystemPods": "true",
}

CILIUM = [
    cluster(
        "ml",
        "research",
        [
            pool(
                "system",
                "Standard_D4ds_v5",
                mode="System",
                count=2,
                minCount=2,
                maxCount=4,
                enableAutoScaling=True,
                vnetSubnetId=SUBNET,
                nodeTaints=["CriticalAddonsOnly=true:NoSchedule"],
            ),
            pool(
                "cpu",
                "Standard_D8ds_v5",
                count=3,
                vnetSubnetId=SUBNET,
                osDiskType="Ephemeral",
                nodeLabels={"tier": "batch"},
                availabilityZones=["1", "2"],
            ),
            spot(
                "gpu",
                "Standard_NC24ads_A100_v4",
                minCount=0,
                maxCount=8,
                count=0,
                vnetSubnetId=SUBNET,
                gpuProfile={"driver": "Install"},
                tags={"cost-center": "42"},
                nodeTaints=[f"{_SPOT}=spot:NoSchedule", "sku=gpu:NoSchedule"],
            ),
        ],
        aadProfile={
            "adminGroupObjectIDs": ["66666666-6666-6666-6666-666666666666"],
            "clientAppId": None,
            "enableAzureRbac": True,
            "managed": True,
            "serverAppId": None,
            "serverAppSecret": None,
            "tenantId": "33333333-3333-3333-3333-333333333333",
        },
        autoScalerProfile=_AUTOSCALER,
        autoUpgradeProfile={"nodeOsUpgradeChannel": "NodeImage", "upgradeChannel": "patch"},
        disableLocalAccounts=True,
        identity={
            "principalId": None,
            "tenantId": None,
            "type": "UserAssigned",
            "userAssignedIdentities": {_IDENTITY: {"clientId": "7", "principalId": "8"}},
        },
        networkProfile={
            "networkDataplane": "cilium",
            "networkPolicy": "cilium",
            "podCidr": "192.168.0.0/16",
            "podCidrs": ["192.168.0.0/16"],
        },
        oidcIssuerProfile={"enabled": True, "issuerUrl": "https://eastus.oic.prod-aks.azure.com/3/9/"},
        securityProfile={"workloadIdentity": {"enabled": True}},
        sku={"name": "Base", "tier": "Standard"},
        tags={"environment": "research"},
    ),
]
"""azure-aks-docs fb060abe, azure-cni-powered-by-cilium with a subnet, and entra-id-authorization: overlay and
Cilium in an existing subnet, Entra ID without local accounts, three pools."""


def terraform(*resources: Document) -> Document:
    """Return a Terraform state with resources, as `terraform state pull` prints it."""
    return {"version": 4, "terraform_version": "1.13.4", "resources": list(resources), "outputs": {}}


def terraform_resource(kind: str, name: str, attributes: Document) -> Document:
    """Return a managed resource of a Terraform state."""
    return {
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider": 'provider["registry.terraform.io/hashicorp/azurerm"]',
        "instances": [{"schema_version": 2, "attributes": attributes, "sensitive_attributes": []}],
    }


def terraform_pool(name: str, machine: str, **changes: Any) -> Document:
    """Return the attributes of a node pool in a state of azurerm 4, with its zero values."""
    return {
        "auto_scaling_enabled": False,
        "capacity_reservation_group_id": "",
        "eviction_policy": "",
        "fips_enabled": False,
        "gpu_driver": "",
        "gpu_instance": "",
        "host_encryption_enabled": False,
        "host_group_id": "",
        "id": f"{cluster_id('rg-ray', 'ray')}/agentPools/{name}",
        "kubelet_config": [],
        "kubelet_disk_type": "OS",
        "kubernetes_cluster_id": cluster_id("rg-ray", "ray"),
        "linux_os_config": [],
        "max_count": 0,
        "max_pods": 250,
        "min_count": 0,
        "mode": "User",
        "name": name,
        "node_count": 1,
        "node_image_version": "AKSUbuntu-2404gen2containerd-202611.01.0",
        "node_labels": {},
        "node_network_profile": [],
        "node_public_ip_enabled": False,
        "node_public_ip_prefix_id": "",
        "node_taints": [],
        "orchestrator_version": "1.35",
        "os_disk_size_gb": 128,
        "os_disk_type": "Managed",
        "os_sku": "Ubuntu",
        "os_type": "Linux",
        "pod_subnet_id": "",
        "priority": "Regular",
        "proximity_placement_group_id": "",
        "scale_down_mode": "Delete",
        "snapshot_id": "",
        "spot_max_price": -1,
        "tags": {},
        "timeouts": None,
        "ultra_ssd_enabled": False,
        "upgrade_settings": [],
        "vm_size": machine,
        "vnet_subnet_id": "",
        "windows_profile": [],
        "workload_runtime": "OCIContainer",
        "zones": [],
        **changes,
    }


_EXCLUDED = [{"start": "2026-12-20T00:00:00Z", "end": "2027-01-02T00:00:00Z"}]
_WEEKLY = {
    "frequency": "Weekly",
    "interval": 1,
    "duration": 6,
    "day_of_week": "Saturday",
    "day_of_month": 0,
    "week_index": "",
    "start_time": "02:00",
    "start_date": "2026-01-03T00:00:00Z",
    "utc_offset": "+00:00",
    "not_allowed": _EXCLUDED,
}
TERRAFORM_WINDOWS: Document = {
    "maintenance_window_auto_upgrade": [_WEEKLY],
    "maintenance_window_node_os": [_WEEKLY],
    "maintenance_window": [{"allowed": [{"day": "Sunday", "hours": [1, 2]}], "not_allowed": _EXCLUDED}],
}
"""Maintenance windows of a cluster in a state of azurerm 4."""


def terraform_cluster(pool: Document, **changes: Any) -> Document:
    """Return the attributes of a cluster in a state of azurerm 4, with its zero values and outputs."""
    default = {
        key: value
        for key, value in pool.items()
        if key not in ("id", "kubernetes_cluster_id", "mode", "priority", "eviction_policy", "os_type")
        and key not in ("spot_max_price", "node_image_version", "node_taints", "timeouts", "windows_profile")
    }
    return {
        "api_server_access_profile": [],
        "auto_scaler_profile": [],
        "automatic_upgrade_channel": "",
        "azure_active_directory_role_based_access_control": [],
        "azure_policy_enabled": False,
        "cost_analysis_enabled": False,
        "current_kubernetes_version": "1.35.2",
        "default_node_pool": [
            {**default, "temporary_name_for_rotation": "", "type": "VirtualMachineScaleSets"}
        ],
        "disk_encryption_set_id": "",
        "dns_prefix": "ray",
        "dns_prefix_private_cluster": "",
        "fqdn": "ray-1a2b.hcp.eastus2.azmk8s.io",
        "http_application_routing_enabled": False,
        "id": cluster_id("rg-ray", "ray"),
        "identity": [{"identity_ids": [], "principal_id": "2", "tenant_id": "3", "type": "SystemAssigned"}],
        "image_cleaner_enabled": False,
        "image_cleaner_interval_hours": 0,
        "key_management_service": [],
        "kube_admin_config": [],
        "kube_config": [{"client_key": "a secret", "host": "https://ray-1a2b.hcp.eastus2.azmk8s.io:443"}],
        "kube_config_raw": "a secret",
        "kubelet_identity": [{"client_id": "4", "object_id": "5", "user_assigned_identity_id": "6"}],
        "kubernetes_version": "1.35",
        "linux_profile": [],
        "local_account_disabled": False,
        "location": "eastus2",
        "maintenance_window": [],
        "microsoft_defender": [],
        "monitor_metrics": [],
        "name": "ray",
        "network_profile": [
            {
                "dns_service_ip": "10.0.0.10",
                "ip_versions": ["IPv4"],
                "load_balancer_profile": [
                    {
                        "backend_pool_type": "NodeIPConfiguration",
                        "effective_outbound_ips": ["/subscriptions/s/resourceGroups/g/ip"],
                        "idle_timeout_in_minutes": 0,
                        "managed_outbound_ip_count": 1,
                        "managed_outbound_ipv6_count": 0,
                        "outbound_ports_allocated": 0,
                    }
                ],
                "load_balancer_sku": "standard",
                "nat_gateway_profile": [],
                "network_data_plane": "azure",
                "network_plugin": "azure",
                "network_plugin_mode": "",
                "network_policy": "",
                "outbound_type": "loadBalancer",
                "pod_cidr": "",
                "pod_cidrs": [],
                "service_cidr": "10.0.0.0/16",
                "service_cidrs": ["10.0.0.0/16"],
            }
        ],
        "node_os_upgrade_channel": "NodeImage",
        "node_resource_group": "MC_rg-ray_ray_eastus2",
        "node_resource_group_id": "7",
        "oidc_issuer_enabled": True,
        "oidc_issuer_url": "https://eastus2.oic.prod-aks.azure.com/3/9/",
        "oms_agent": [],
        "portal_fqdn": "ray-1a2b.portal.hcp.eastus2.azmk8s.io",
        "private_cluster_enabled": False,
        "private_cluster_public_fqdn_enabled": False,
        "private_dns_zone_id": "",
        "private_fqdn": "",
        "resource_group_name": "rg-ray",
        "role_based_access_control_enabled": True,
        "run_command_enabled": True,
        "service_principal": [],
        "sku_tier": "Standard",
        "storage_profile": [
            {
                "blob_driver_enabled": False,
                "disk_driver_enabled": True,
                "file_driver_enabled": True,
                "snapshot_controller_enabled": True,
            }
        ],
        "support_plan": "KubernetesOfficial",
        "tags": {},
        "timeouts": None,
        "web_app_routing": [],
        "windows_profile": [
            {"admin_password": "a secret", "admin_username": "azureuser", "gmsa": [], "license": ""}
        ],
        "workload_autoscaler_profile": [],
        "workload_identity_enabled": True,
        **changes,
    }


RAY = [
    terraform(
        terraform_resource(
            "azurerm_kubernetes_cluster",
            "demo",
            terraform_cluster(
                terraform_pool(
                    "system",
                    "Standard_D4ds_v6",
                    node_count=2,
                    max_pods=30,
                    only_critical_addons_enabled=True,
                    upgrade_settings=[{"max_surge": "10%"}],
                )
            ),
        ),
        terraform_resource(
            "azurerm_kubernetes_cluster_node_pool",
            "workload",
            terraform_pool(
                "gpupool",
                "Standard_ND96amsr_A100_v4",
                gpu_driver="Install",
                max_pods=30,
                node_labels={"workload": "ray"},
                zones=["1"],
            ),
        ),
    )
]
"""Azure/AKS 8d1c8909, examples/kueue-and-ray-on-aks (azure-aks-docs fb060abe, deploy-ray-infrastructure): its
Terraform state."""

VERIFIED = [
    cluster(
        "rg-aks",
        "aks-verified",
        [pool("systempool", "Standard_D2s_v5", mode="System")],
        aadProfile={"enableAzureRbac": True, "managed": True, "tenantId": "3"},
        addonProfiles={
            "omsagent": {
                "config": {
                    "logAnalyticsWorkspaceResourceID": f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
                    "/rg-aks/providers/Microsoft.OperationalInsights/workspaces/log",
                    "useAADAuth": "true",
                },
                "enabled": True,
                "identity": {"clientId": "4", "objectId": "5", "resourceId": "6"},
            }
        },
        autoUpgradeProfile={"nodeOsUpgradeChannel": "NodeImage", "upgradeChannel": "none"},
        dnsPrefix="defaultexample",
        sku={"name": "Base", "tier": "Standard"},
    ),
]
"""Azure/terraform-azurerm-avm-res-containerservice-managedcluster 895e0c63, examples/default: one system pool
(of Standard_B2s_v2 there)."""

SHAPES = ("SPOT_DOCS", "CILIUM", "RAY", "VERIFIED")
"""Names of the shapes."""
