"""The cloud of a cluster: account, location, network, access, keys and maintenance."""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from ebbtide.declaration.model.base import (
    Converted,
    Count,
    Declared,
    Duration,
    Name,
    Names,
    Overrides,
    Positive,
    default,
)
from ebbtide.declaration.model.site import AzureRegion, Region, Site
from ebbtide.values.cloud_kind import CloudKind

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
DAYS: tuple[Day, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""The days of a week, in order."""


class GkeKeys(Declared):
    """Cloud KMS keys. Data encrypted with a disabled or destroyed key becomes unavailable."""

    secrets: Name | None = None
    """Key for the Secrets in the cluster's database:
    `projects/P/locations/L/keyRings/R/cryptoKeys/K`. Removing it later decrypts nothing."""
    disks: Name | None = None
    """Key for the nodes' boot disks. Changing it replaces every pool."""
    buckets: Name | None = None
    """Key for new objects in the buckets of teams and of pipelines."""
    registries: Name | None = None
    """Key for the images in the teams' registries. Fixed when a registry is created."""
    grant: bool = True
    """True to grant the role Cloud KMS CryptoKey Encrypter/Decrypter on the keys: to GKE's service agent
    for secrets, and to those of Compute Engine, Cloud Storage and Artifact Registry for disks, buckets and
    registries. The grants remain when the stack is destroyed: other stacks of the project may need them, and
    the data that is kept. `false` if the keys' owner has granted it."""


class AksKeys(Declared):
    """Azure Key Vault keys. Data encrypted with a disabled or deleted key becomes unavailable."""

    secrets: Name | None = None
    """Key for the Secrets in the cluster's database: its identifier with the version,
    `https://NAME.vault.azure.net/keys/KEY/VERSION`. The vault must allow public network access."""
    buckets: Name | None = None
    """Key for the storage accounts of the teams' buckets: its identifier, without the version to follow the
    key's rotation: `https://NAME.vault.azure.net/keys/KEY`. Each account has an identity of its own, with the
    role Key Vault Crypto Service Encryption User on `vault`, which remains with an account that is kept."""
    registries: Name | None = None
    """Key for the teams' registries, in the same way; they have the Premium tier then. Fixed when a registry
    is created."""
    vault: Name | None = None
    """Resource id of the vault of `secrets`, `buckets` and `registries`. For `secrets`, the role Key Vault
    Crypto User is granted to the cluster's identity. `buckets` and `registries` require its purge
    protection."""
    disks: Name | None = None
    """Resource id of the disk encryption set for the nodes' disks, on which the cluster's identity is granted
    Reader. Fixed when the cluster is created. The set's own identity needs the role Key Vault Crypto Service
    Encryption User on its vault."""
    grant: bool = True
    """True to grant these roles; `false` if the owner of the vault and the set has granted them to the
    cluster's identity."""


class MaintenanceWindow(Declared):
    """The hours in which upgrades are allowed."""

    days: Converted[tuple[Day, ...], list[Day] | tuple[Day, ...]] = default(())
    """Days on which the window begins, UTC. Default: every day. AKS: one day, or every day."""
    start: Name
    """Start time, UTC: `"02:00"`."""
    duration: Converted[Duration, str]
    """Duration, 4 to 24 hours: `6h`. GKE requires 48 hours for upgrades in any 92 days, without those that
    exclusions cover."""


class MaintenanceExclusion(Declared):
    """Days without upgrades, even within the window."""

    name: Name
    """Name, used by GKE only."""
    start: date
    """First day, UTC: `"2026-12-20"`."""
    end: date | None = None
    """Last day, UTC. Default on GKE, for other scopes than `no-upgrades`: until the end of support of the
    cluster's version."""
    scope: Literal["no-upgrades", "no-minor-upgrades", "no-minor-or-node-upgrades"] = "no-upgrades"
    """GKE: the excluded upgrades. `no-upgrades` lasts 90 days at most, and is allowed three times. AKS
    supports `no-upgrades` only."""


class Maintenance(Declared):
    """Times of automatic upgrades of the cluster and its nodes. Urgent repairs ignore them."""

    window: MaintenanceWindow
    exclusions: Converted[
        tuple[MaintenanceExclusion, ...], list[MaintenanceExclusion] | tuple[MaintenanceExclusion, ...]
    ] = Field(default=())  # pyright: ignore[reportAssignmentType] # as `default`
    """Periods without upgrades, or without some kinds of upgrades."""


class Existing(Declared):
    """An existing cluster. Pools and add-ons are added to it; the cluster itself is never changed or
    destroyed."""

    name: Name
    """Its name in the cloud."""


class GkeAccess(Declared):
    """Access to the control plane. A cluster that is not private has a DNS endpoint, protected by IAM."""

    networks: Converted[tuple[str, ...], list[str] | tuple[str, ...]] = default(())
    """Ranges (CIDR) that can reach the IP endpoint. Default: no IP endpoint; for a private cluster, its own
    nodes and pods only."""
    private: bool = False
    """True for an address in the cluster's network only, without a DNS endpoint. Deployments and submissions
    then run in that network, or in one of `networks` that is connected to it."""


class GkeNetwork(Declared):
    """The cluster's network: a new one with these ranges, or an existing one."""

    nodes: str = "10.0.0.0/20"
    """Range of the nodes' addresses (CIDR)."""
    pods: str = "10.4.0.0/14"
    """Range of the pods' addresses (CIDR)."""
    services: str = "10.8.0.0/20"
    """Range of the services' addresses (CIDR)."""
    gpus: str = "192.168.0.0/16"
    """Range of the NICs of pools with `gpuDirect` (CIDR); each of their networks has a 32nd of it. Fixed when
    the first such pool is created."""
    vpc: str | None = None
    """An existing VPC: its name or self link. It requires `subnet` and `podsRange`."""
    subnet: str | None = None
    """An existing subnet of `vpc`: its name or self link."""
    pods_range: str | None = None
    """Name of the subnet's secondary range for pods."""
    services_range: str | None = None
    """Name of the subnet's secondary range for services. Default with `vpc`: a range that GKE manages."""


class GkeConsolidation(Declared):
    """Removal of idle nodes by GKE's autoscaler."""

    profile: Literal["balanced", "optimize-utilization"] = "optimize-utilization"
    """The cluster's autoscaling profile: `balanced` keeps spare nodes, `optimize-utilization` removes nodes
    sooner. Google publishes no times for either."""
    delay_minutes: Annotated[int, Field(strict=True, ge=1, le=1440)] | None = None
    """Idle minutes before a node of a queue with `fallback` is removed, up to a day; set in the queue's
    ComputeClass (its CustomResourceDefinition, in @kubernetes-models/gke 4.6.2, 2026). Nodes of other pools
    follow the profile. Default: GKE's own."""


class GkeResources(Declared):
    """Inputs of resources beside the cluster, applied last to each of their kind: see `overrides`."""

    network: Overrides = Field(default_factory=Overrides)
    """Of `gcp.compute.Network`."""
    subnetwork: Overrides = Field(default_factory=Overrides)
    """Of `gcp.compute.Subnetwork`, such as `logConfig` for flow logs."""
    router: Overrides = Field(default_factory=Overrides)
    """Of `gcp.compute.Router`."""
    router_nat: Overrides = Field(default_factory=Overrides)
    """Of `gcp.compute.RouterNat`."""
    bucket: Overrides = Field(default_factory=Overrides)
    """Of `gcp.storage.Bucket`, of teams and of pipelines, such as `versioning`, `lifecycleRules` and
    `softDeletePolicy`."""
    repository: Overrides = Field(default_factory=Overrides)
    """Of `gcp.artifactregistry.Repository`, such as `vulnerabilityScanningConfig`."""


class Gke(Declared):
    """Google Kubernetes Engine."""

    kind: Literal[CloudKind.GKE] = CloudKind.GKE
    project: Name
    """Project id."""
    location: Name
    """A zone (`us-central1-a`), for a zonal cluster, or a region. A location that is newer than Ebbtide's
    table is added under `regions`."""
    release_channel: Literal["rapid", "regular", "stable", "extended", "none"] = "regular"
    """Release channel. `none`: GKE upgrades the cluster only at the end of its version's support, and a pool
    may have `autoUpgrade: false`."""
    kubernetes_version: str | None = None
    """Minimum version of the control plane, `latest`, or `-` for GKE's default. Nodes are created with the
    control plane's version. Default: the release channel's."""
    access: GkeAccess = GkeAccess()
    network: GkeNetwork = GkeNetwork()
    keys: GkeKeys = GkeKeys()
    """Customer-managed encryption keys. Default: Google's keys."""
    network_tags: Names = default(())
    """Network tags of the nodes of every pool, for the network's firewall rules and routes."""
    maintenance: Maintenance | None = None
    """Times of upgrades of the cluster and its nodes. Default: any time."""
    consolidation: GkeConsolidation = GkeConsolidation()
    regions: tuple[Region, ...] = ()
    """Regions, zones and hardware that are newer than Ebbtide's tables."""
    overrides: Overrides = Field(default_factory=Overrides)
    """Inputs of `gcp.container.Cluster` that the declaration has no field for, applied last, with their names
    as in Pulumi YAML. Mappings are merged with the derived inputs; lists replace them."""
    resources: GkeResources = GkeResources()
    """Inputs of networks, buckets and registries, in the same way."""
    existing: Existing | None = None

    @property
    def site(self) -> Site:
        """Site that the rules of its pools read."""
        return Site(CloudKind.GKE, self.location, self.kubernetes_version, self.regions)


class AksAccess(Declared):
    """Access to the control plane, and its administrators."""

    admins: Names = default(())
    """Object ids of the Entra groups that administer the cluster. Default: the identity that deploys it."""
    networks: Converted[tuple[str, ...], list[str] | tuple[str, ...]] = default(())
    """Ranges (CIDR) that can reach the API server. Default: it is open to the Internet, protected by Entra.
    Not for a private cluster, where such ranges have no effect."""
    private: bool = False
    """True for an address in the cluster's network only. Deployments and submissions then run in that
    network, or in one that is connected to it. Fixed when the cluster is created."""
    private_dns_zone: Name = "system"
    """DNS zone of a private API server: `system` for one that AKS creates, `none` for a public name of the
    private address, or the resource id of a zone `privatelink.<region>.azmk8s.io`. Fixed when the cluster
    is created."""
    login: Literal["azurecli", "workloadidentity"] = "azurecli"
    """Source of kubelogin's token: the Azure CLI, or a federated workload identity, as in CI."""


class AksNetwork(Declared):
    """The cluster's network: a new one with these ranges, an existing subnet, or AKS's own."""

    nodes: str = "10.224.0.0/16"
    """Range of the nodes' addresses (CIDR)."""
    pods: str = "10.244.0.0/16"
    """Range of the pods' addresses (CIDR), an overlay."""
    services: str = "10.0.0.0/16"
    """Range of the services' addresses (CIDR)."""
    subnet: str | None = None
    """Resource id of an existing subnet for the nodes."""
    managed: bool = False
    """True for a network that AKS creates in the nodes' resource group, as the Azure CLI does by default:
    10.224.0.0/12, which nothing else can use. Fixed when the cluster is created."""


class AksConsolidation(Declared):
    """Removal of idle nodes by the cluster autoscaler."""

    delay_minutes: Positive = 10
    """Idle minutes before a node is removed: `scale-down-unneeded-time`."""
    after_add_minutes: Count | None = None
    """Minutes without removals after a node was added: `scale-down-delay-after-add`. Default: AKS's own
    (10)."""


class AksResources(Declared):
    """Inputs of resources beside the cluster, applied last to each of their kind: see `overrides`."""

    virtual_network: Overrides = Field(default_factory=Overrides)
    """Of `azure-native.network.VirtualNetwork`, such as `ddosProtectionPlan`."""
    subnet: Overrides = Field(default_factory=Overrides)
    """Of `azure-native.network.Subnet`, such as `networkSecurityGroup` and `routeTable`."""
    storage_account: Overrides = Field(default_factory=Overrides)
    """Of `azure-native.storage.StorageAccount`, of the buckets of teams, such as `sku` and `encryption`."""
    file_storage_account: Overrides = Field(default_factory=Overrides)
    """Of `azure-native.storage.StorageAccount`, of the file shares of teams, such as `networkRuleSet`."""
    blob_service: Overrides = Field(default_factory=Overrides)
    """Of an `azure-native.storage.BlobServiceProperties` of each bucket, created for these inputs alone, such
    as `deleteRetentionPolicy`, which keeps deleted blobs for some days. Azure's defaults if removed."""
    management_policy: Overrides = Field(default_factory=Overrides)
    """Of an `azure-native.storage.ManagementPolicy` of each bucket, created for these inputs alone: `policy`,
    the rules that delete blobs or move them to cooler tiers."""
    registry: Overrides = Field(default_factory=Overrides)
    """Of `azure-native.containerregistry.Registry`, such as `sku` and `encryption`."""


class Aks(Declared):
    """Azure Kubernetes Service."""

    kind: Literal[CloudKind.AKS] = CloudKind.AKS
    subscription: Name
    """Subscription id."""
    resource_group: Name | None = None
    """Resource group of the cluster. Default: the cluster's name."""
    create_resource_group: bool = True
    """`false` for a resource group that exists. It remains when the stack is destroyed, as do its buckets and
    registries that are kept, which otherwise have groups of their own, and everything that is not the
    stack's."""
    location: AzureRegion
    """Region, such as `eastus`, also as Azure displays it, `East US`. A region that is newer than Ebbtide's
    table is added under `regions`."""
    tier: Literal["free", "standard", "premium"] = "free"
    """Pricing tier of the control plane: without (`free`) or with (`standard`) an uptime SLA; `premium` also
    has a second year of support for each Kubernetes version (AKSLongTermSupport)."""
    upgrade_channel: Literal["rapid", "stable", "patch", "node-image", "none"] = "patch"
    """Upgrade channel."""
    kubernetes_version: str | None = None
    """Version of the control plane and the nodes. Default: AKS's own."""
    access: AksAccess = AksAccess()
    network: AksNetwork = AksNetwork()
    keys: AksKeys = AksKeys()
    """Customer-managed encryption keys. Default: Microsoft's keys."""
    maintenance: Maintenance | None = None
    """Times of the upgrades of `upgradeChannel`. Default: any time."""
    consolidation: AksConsolidation = AksConsolidation()
    regions: tuple[Region, ...] = ()
    """Regions, zones and hardware that are newer than Ebbtide's tables."""
    overrides: Overrides = Field(default_factory=Overrides)
    """Inputs of `azure-native.containerservice.ManagedCluster` that the declaration has no field for, applied
    last, with their names as in Pulumi YAML. Mappings are merged with the derived inputs; lists replace
    them."""
    resources: AksResources = AksResources()
    """Inputs of networks, storage accounts and registries, in the same way."""
    existing: Existing | None = None

    @property
    def site(self) -> Site:
        """Site that the rules of its pools read."""
        return Site(CloudKind.AKS, self.location, self.kubernetes_version, self.regions)


Cloud = Annotated[Gke | Aks, Field(discriminator="kind")]
