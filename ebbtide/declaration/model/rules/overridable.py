"""Inputs of providers' resources that overrides cannot set freely: those that fields of the declaration
become, and those on whose value Ebbtide relies."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from ebbtide.declaration.model.base import POOL_TYPES
from ebbtide.declaration.model.expiry import LABEL as EXPIRES
from ebbtide.declaration.model.pool_inputs import field_by_input
from ebbtide.values.cloud_kind import CloudKind, by_cloud

_OPTIONAL: Final = frozenset({"addons.logs", "addons.metrics", "cloud.maintenance", "gpuDirect"})
"""Fields whose inputs an override may set as long as they are not declared."""
BILLING: Final = ("ebbtide-cluster", "ebbtide-owner", EXPIRES)
# Of a placement policy, its name is no field's.
_NO_POLICIES: Final = "Network policies of teams' namespaces would not be enforced."


@dataclass(frozen=True, slots=True)
class Relied:
    """An input without a field in the declaration, on whose value Ebbtide relies.

    Attributes:
        otherwise: what would happen with another value.
        value: the only value that an override may have; None for none.
        instead: what to do instead of the override.
        for_teams: true if only the namespaces of teams rely on it.
    """

    otherwise: str
    value: bool | str | None = None
    instead: str = "Remove the override."
    for_teams: bool = False


@dataclass(frozen=True, slots=True)
class Overridable:
    """A resource whose inputs can be overridden.

    Attributes:
        token: type token in the provider's schema.
        derived: field of the declaration by path of an input; empty if the declaration has no field for it,
            and derived values depend on its default.
        relied_on: inputs on whose value Ebbtide relies, by path.
    """

    token: str
    derived: Mapping[str, str]
    relied_on: Mapping[str, Relied]

    def beside(self, declared: Collection[str]) -> Self:
        """Return the resource with what Ebbtide derives and relies on beside some declared fields.

        Args:
            declared: the declared fields, of `teams` and the optional ones.
        """
        unused = _OPTIONAL.difference(declared)
        relied_on = self.relied_on.items()
        return replace(
            self,
            derived={path: name for path, name in self.derived.items() if name not in unused},
            relied_on={path: item for path, item in relied_on if "teams" in declared or not item.for_teams},
        )


def _rows(**fields: tuple[str, ...]) -> dict[str, str]:
    return {path: field.replace("__", ".") for field, paths in fields.items() for path in paths}


_GKE_POOL: Final = {
    path: name for path, name in field_by_input(CloudKind.GKE).items() if path != "placementPolicy"
} | _rows(
    compact=("placementPolicy.type", "placementPolicy.tpuTopology"),
    cloud=("cluster", "project", "location"),
    cloud__keys=("nodeConfig.bootDiskKmsKey",),
    owner=tuple(f"nodeConfig.resourceLabels.{label}" for label in BILLING),
)

_AKS_POOL: Final = field_by_input(CloudKind.AKS) | _rows(
    cloud=("resourceName", "resourceGroupName"),
    cloud__kubernetesVersion=("orchestratorVersion",),
    owner=tuple(f"tags.{label}" for label in BILLING),
)

_GKE_CLUSTER: Final = _rows(
    name=("name",),
    cloud__project=("project",),
    cloud__location=("location", "nodeLocations"),
    cloud__releaseChannel=("releaseChannel",),
    cloud__kubernetesVersion=("minMasterVersion", "nodeVersion"),
    cloud__network=(
        "network",
        "subnetwork",
        "networkingMode",
        "clusterIpv4Cidr",
        "ipAllocationPolicy.clusterSecondaryRangeName",
        "ipAllocationPolicy.servicesSecondaryRangeName",
        "ipAllocationPolicy.clusterIpv4CidrBlock",
        "ipAllocationPolicy.servicesIpv4CidrBlock",
    ),
    cloud__keys=("databaseEncryption",),
    cloud__maintenance=(
        "maintenancePolicy.recurringWindow",
        "maintenancePolicy.recurringMaintenanceWindow",
        "maintenancePolicy.dailyMaintenanceWindow",
        "maintenancePolicy.maintenanceExclusions",
    ),
    cloud__access=(
        "masterAuthorizedNetworksConfig.cidrBlocks",
        "controlPlaneEndpointsConfig",
        "privateClusterConfig.enablePrivateEndpoint",
    ),
    pools=(
        "nodePools",
        "nodeConfig",
        "initialNodeCount",
        "removeDefaultNodePool",
        "ignoreNodeCountChanges",
        "enableAutopilot",
        # Pools that GKE creates itself have no placement, no queue and no cost limit.
        "clusterAutoscaling.enabled",
    ),
    cloud__consolidation=("clusterAutoscaling.autoscalingProfile",),
    teams=("workloadIdentityConfig", "authenticatorGroupsConfig"),
    lifetime=("deletionProtection", "deletionPolicy"),
    owner=tuple(f"resourceLabels.{label}" for label in BILLING),
)

_AKS_CLUSTER: Final = _rows(
    name=("resourceName",),
    cloud__resourceGroup=("resourceGroupName",),
    cloud__location=("location",),
    cloud__tier=("sku", "supportPlan"),
    cloud__upgradeChannel=("autoUpgradeProfile.upgradeChannel",),
    cloud__kubernetesVersion=("kubernetesVersion",),
    cloud__keys=("diskEncryptionSetID", "securityProfile.azureKeyVaultKms"),
    cloud__access=(
        "apiServerAccessProfile.authorizedIPRanges",
        "apiServerAccessProfile.enablePrivateCluster",
        "apiServerAccessProfile.enablePrivateClusterPublicFQDN",
        "apiServerAccessProfile.privateDNSZone",
        "publicNetworkAccess",
        "aadProfile.adminGroupObjectIDs",
        "aadProfile.enableAzureRBAC",
    ),
    cloud__network=(
        "networkProfile.podCidr",
        "networkProfile.podCidrs",
        "networkProfile.serviceCidr",
        "networkProfile.serviceCidrs",
        "networkProfile.dnsServiceIP",
    ),
    pools=("agentPoolProfiles", "nodeProvisioningProfile"),
    cloud__consolidation=(
        "autoScalerProfile.scaleDownUnneededTime",
        "autoScalerProfile.scaleDownDelayAfterAdd",
    ),
    queues=("autoScalerProfile.expander",),
    teams=("oidcIssuerProfile", "securityProfile.workloadIdentity", "storageProfile.blobCSIDriver"),
    addons__logs=("addonProfiles.omsagent", "addonProfiles.omsAgent"),
    addons__metrics=("azureMonitorProfile.metrics",),
    owner=tuple(f"tags.{label}" for label in BILLING),
)

_GKE_POOL_RELIED: Final = {
    "nodeConfig.sandboxConfig": Relied(
        "GKE taints such nodes with sandbox.gke.io/runtime=gvisor, which pods of queues and placements do "
        "not tolerate: no work would run there (GKE docs, sandbox-pods, 2026).",
    ),
    "nodeConfig.workloadMetadataConfig.mode": Relied(
        "Pods would use the identity of the node instead of their team's.",
        value="GKE_METADATA",
        for_teams=True,
    ),
}

_AKS_POOL_RELIED: Final = {
    "powerState.code": Relied(
        "The pool would have no nodes, and its queue would admit work that stays pending.",
        value="Running",
        instead="Remove it, and stop the stack with `ebbtide sleep`.",
    ),
    "scaleDownMode": Relied(
        "Nodes that are scaled down would stay, deallocated: their disks are billed, and the autoscaler does "
        "not fall back to another pool (Azure/AKS#5589).",
        value="Delete",
    ),
}

_GKE_CLUSTER_RELIED: Final = {
    "datapathProvider": Relied(_NO_POLICIES, value="ADVANCED_DATAPATH", for_teams=True),
    "networkPolicy.enabled": Relied(_NO_POLICIES, value=False, for_teams=True),
    "addonsConfig.networkPolicyConfig.disabled": Relied(_NO_POLICIES, value=True, for_teams=True),
    "addonsConfig.gcsFuseCsiDriverConfig.enabled": Relied(
        "Pods could not mount the buckets of their teams.", value=True
    ),
    "addonsConfig.gcePersistentDiskCsiDriverConfig.enabled": Relied(
        "Volumes of add-ons and of work would stay pending.", value=True
    ),
    "enableKubernetesAlpha": Relied(
        "An alpha cluster is on no release channel, has no upgrades and is deleted after 30 days (GKE docs, "
        "alpha-clusters, 2026).",
        value=False,
    ),
    "clusterAutoscaling.defaultComputeClassEnabled": Relied(
        "Pods would get nodes of a class that has no pool, no quota and no cost limit here.", value=False
    ),
}

_AKS_CLUSTER_RELIED: Final = {
    "networkProfile.networkPlugin": Relied(_NO_POLICIES, value="azure"),
    "networkProfile.networkPluginMode": Relied(
        "Pods would have addresses of the nodes' subnet, which is too small for them.", value="overlay"
    ),
    "networkProfile.networkDataplane": Relied(_NO_POLICIES, value="cilium", for_teams=True),
    "networkProfile.networkPolicy": Relied(_NO_POLICIES, value="cilium", for_teams=True),
    "networkProfile.loadBalancerSku": Relied(
        "AKS creates no cluster with a Basic load balancer since 2025-09-30 (azure-aks-docs, "
        "quotas-skus-regions, 2026-08).",
        value="standard",
    ),
    "storageProfile.diskCSIDriver.enabled": Relied(
        "Volumes of add-ons and of work would stay pending.", value=True
    ),
    "storageProfile.fileCSIDriver.enabled": Relied("Shared volumes of teams would stay pending.", value=True),
}


POOLS: Final = by_cloud(
    gke=Overridable(POOL_TYPES[CloudKind.GKE], _GKE_POOL, _GKE_POOL_RELIED),
    aks=Overridable(POOL_TYPES[CloudKind.AKS], _AKS_POOL, _AKS_POOL_RELIED),
)
"""Node pool resources. The inline pools of an AKS cluster have the same inputs."""


CLUSTERS: Final = by_cloud(
    gke=Overridable("gcp:container/cluster:Cluster", _GKE_CLUSTER, _GKE_CLUSTER_RELIED),
    aks=Overridable("azure-native:containerservice:ManagedCluster", _AKS_CLUSTER, _AKS_CLUSTER_RELIED),
)
"""Cluster resources."""
