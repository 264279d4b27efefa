"""The cloud that a cluster stands on: where, in whose account, who reaches it, on which network."""

from typing import Annotated, Literal

from pydantic import Field

from ebbtide.catalog import CloudKind
from ebbtide.model.base import Converted, Declared, Name, Names, Overrides, default
from ebbtide.model.keys import AksKeys, GkeKeys
from ebbtide.model.maintenance import Maintenance
from ebbtide.model.region import Region
from ebbtide.model.site import Site


class Existing(Declared):
    """A cluster that is there already; pools and add-ons are added to it, and it is never changed or
    destroyed."""

    name: Name
    """Its name in the cloud."""


class GkeAccess(Declared):
    """Access to the control plane. Unless it is private, it has a DNS endpoint, which IAM protects."""

    networks: Converted[tuple[str, ...], list[str] | tuple[str, ...]] = default(())
    """Ranges (CIDR) from which the IP endpoint is reached. Default: there is no IP endpoint; of a private
    cluster, it is reached from its own nodes and pods alone."""
    private: bool = False
    """True for an address in the cluster's network alone, without a DNS endpoint. Deployments and submissions
    then run in that network, or in one of `networks` that is connected to it."""


class GkeNetwork(Declared):
    """The cluster's network: its own with these ranges, or one that is there already."""

    nodes: str = "10.0.0.0/20"
    """Range of the nodes' addresses (CIDR)."""
    pods: str = "10.4.0.0/14"
    """Range of the pods' addresses (CIDR)."""
    services: str = "10.8.0.0/20"
    """Range of the services' addresses (CIDR)."""
    vpc: str | None = None
    """An existing VPC: its name or self link. `subnet`, `podsRange` and `servicesRange` go with it."""
    subnet: str | None = None
    """An existing subnet of `vpc`: its name or self link."""
    pods_range: str | None = None
    """Name of the subnet's secondary range for pods."""
    services_range: str | None = None
    """Name of the subnet's secondary range for services."""


class GkeConsolidation(Declared):
    """Removal of nodes without work by GKE's autoscaler."""

    profile: Literal["balanced", "optimize-utilization"] = "optimize-utilization"
    """The cluster's autoscaling profile: `balanced` keeps spare nodes, `optimize-utilization` removes nodes
    sooner. Google publishes no times of either."""
    delay_minutes: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Minutes without work until a node of a queue with `fallback` is removed, which the queue's ComputeClass
    sets. Nodes of other pools follow the profile. Default: GKE's own."""


class Gke(Declared):
    """Google Kubernetes Engine."""

    kind: Literal[CloudKind.GKE] = CloudKind.GKE
    project: Name
    """Project id."""
    location: Name
    """A zone (`us-central1-a`), which makes a zonal cluster, or a region. One that is newer than Ebbtide's
    table is added under `regions`."""
    release_channel: Literal["rapid", "regular", "stable", "extended"] = "regular"
    """Release channel."""
    kubernetes_version: str | None = None
    """The least version of the control plane, where it must be pinned; nodes are made with the control
    plane's."""
    access: GkeAccess = GkeAccess()
    network: GkeNetwork = GkeNetwork()
    keys: GkeKeys = GkeKeys()
    """Keys of one's own for what is at rest. Default: Google's."""
    network_tags: Names = default(())
    """Network tags of the nodes of every pool, for the firewall rules and routes of their network."""
    maintenance: Maintenance | None = None
    """Times of upgrades of the cluster and its nodes. Default: at any time."""
    consolidation: GkeConsolidation = GkeConsolidation()
    regions: tuple[Region, ...] = ()
    """Regions, zones and hardware that are newer than Ebbtide's tables."""
    overrides: Overrides = Field(default_factory=Overrides)
    """Inputs of the provider's resource of the cluster that nothing here declares, applied last, as Pulumi's
    YAML has them: of `gcp.container.Cluster`. Mappings are merged with what is derived; lists replace it."""
    existing: Existing | None = None

    @property
    def site(self) -> Site:
        """Surroundings of its pools."""
        return Site(CloudKind.GKE, self.location, self.kubernetes_version, self.regions)


class AksAccess(Declared):
    """Access to the control plane, and its administrators."""

    admins: Names = default(())
    """Object ids of the Entra groups that administer the cluster. Default: the identity that deploys it."""
    networks: Converted[tuple[str, ...], list[str] | tuple[str, ...]] = default(())
    """Ranges (CIDR) from which the API server is reached. Default: it is open to the world, guarded by
    Entra. Not for a private cluster, which such ranges do not apply to."""
    private: bool = False
    """True for an address in the cluster's network alone. Deployments and submissions then run in that
    network, or in one that is connected to it. It is fixed when the cluster is created."""
    private_dns_zone: Name = "system"
    """Zone in which a private API server has its name: `system` for one that AKS makes, `none` for a public
    name of the private address, or the resource id of a zone `privatelink.<region>.azmk8s.io`. It is fixed
    when the cluster is created."""
    login: Literal["azurecli", "workloadidentity"] = "azurecli"
    """Source of kubelogin's token: the Azure CLI, or a federated workload identity, as in CI."""


class AksNetwork(Declared):
    """The cluster's network: its own with these ranges, or a subnet that is there already."""

    nodes: str = "10.224.0.0/16"
    """Range of the nodes' addresses (CIDR)."""
    pods: str = "10.244.0.0/16"
    """Range of the pods' addresses (CIDR), an overlay."""
    services: str = "10.0.0.0/16"
    """Range of the services' addresses (CIDR)."""
    subnet: str | None = None
    """Resource id of an existing subnet for the nodes."""


class AksConsolidation(Declared):
    """Removal of nodes without work by the cluster autoscaler."""

    delay_minutes: Annotated[int, Field(strict=True, ge=1)] = 10
    """Minutes without work until a node is removed: `scale-down-unneeded-time`."""
    after_add_minutes: Annotated[int, Field(strict=True, ge=0)] | None = None
    """Minutes without removals after a node was added: `scale-down-delay-after-add`. Default: AKS's own,
    10."""


class Aks(Declared):
    """Azure Kubernetes Service."""

    kind: Literal[CloudKind.AKS] = CloudKind.AKS
    subscription: Name
    """Subscription id."""
    resource_group: Name | None = None
    """Resource group to create for the cluster, or that the existing cluster is in. Default: the cluster's
    name."""
    location: Name
    """Region, as `eastus`. One that is newer than Ebbtide's table is added under `regions`."""
    tier: Literal["free", "standard"] = "free"
    """Control plane: without or with an uptime agreement."""
    upgrade_channel: Literal["rapid", "stable", "patch", "node-image", "none"] = "patch"
    """Upgrade channel."""
    kubernetes_version: str | None = None
    """Version of the control plane and the nodes, where it must be pinned."""
    access: AksAccess = AksAccess()
    network: AksNetwork = AksNetwork()
    keys: AksKeys = AksKeys()
    """Keys of one's own for what is at rest. Default: Microsoft's."""
    maintenance: Maintenance | None = None
    """Times of the upgrades of `upgradeChannel`. Default: at any time."""
    consolidation: AksConsolidation = AksConsolidation()
    regions: tuple[Region, ...] = ()
    """Regions, zones and hardware that are newer than Ebbtide's tables."""
    overrides: Overrides = Field(default_factory=Overrides)
    """Inputs of the provider's resource of the cluster that nothing here declares, applied last, as Pulumi's
    YAML has them: of `azure-native.containerservice.ManagedCluster`. Mappings are merged with what is
    derived; lists replace it."""
    existing: Existing | None = None

    @property
    def site(self) -> Site:
        """Surroundings of its pools."""
        return Site(CloudKind.AKS, self.location, self.kubernetes_version, self.regions)


Cloud = Annotated[Gke | Aks, Field(discriminator="kind")]
