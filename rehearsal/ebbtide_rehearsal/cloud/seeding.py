"""Existing networks and clusters, which the declaration names but no stack created."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.operations.adopting.found import Found
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud import ids
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import (
    AKS_CLUSTER,
    AZURE,
    GCP,
    GKE_CLUSTER,
    GROUP,
    NETWORK,
    SUBNET,
    SUBNETWORK,
    VNET,
)
from ebbtide_rehearsal.cloud.provider import Clusters
from ebbtide_rehearsal.cloud.store import Store


def seed_network(
    store: Store,
    clusters: Clusters,
    *,
    project: str,
    location: str,
    network: str,
    subnetwork: str,
    pods: str,
    services: str,
) -> None:
    """Create a network of Google Cloud, with a subnetwork and its secondary ranges for pods and services.

    Args:
        store: the fake cloud's store.
        clusters: control planes.
        project: project id.
        location: a region, or a zone of it.
        network: name of the network.
        subnetwork: name of its subnetwork.
        pods: name of the secondary range for pods.
        services: name of the secondary range for services.
    """
    provider = FakeProvider(GCP, store, clusters, {"project": project, "region": region_of(location)})
    inside = provider.seed(NETWORK, {"name": network, "autoCreateSubnetworks": False})
    ranges: Any = [
        {"rangeName": pods, "ipCidrRange": "10.4.0.0/14"},
        {"rangeName": services, "ipCidrRange": "10.8.0.0/20"},
    ]
    own: Any = {
        "name": subnetwork,
        "network": inside,
        "ipCidrRange": "10.0.0.0/20",
        "secondaryIpRanges": ranges,
    }
    provider.seed(SUBNETWORK, own)


def seed_gke(
    store: Store,
    clusters: Clusters,
    *,
    project: str,
    location: str,
    name: str,
    release_channel: str = "REGULAR",
    dns_endpoint: bool = True,
) -> str:
    """Create a cluster on GKE: VPC-native, in the project's default network, with Workload Identity, and a
    default pool of one node in each zone, as `gcloud container clusters create --machine-type e2-standard-4`.

    Args:
        store: the fake cloud's store.
        clusters: control planes.
        project: project id.
        location: a zone or a region.
        name: name of the cluster.
        release_channel: release channel of the API, or `UNSPECIFIED`.
        dns_endpoint: True if the DNS endpoint is open to external traffic; otherwise the IP endpoint is used.

    Returns:
        Id of the cluster, also used for its control plane.
    """
    inputs: Any = {
        "name": name,
        "project": project,
        "location": location,
        "network": f"projects/{project}/global/networks/default",
        "subnetwork": f"projects/{project}/regions/{region_of(location)}/subnetworks/default",
        "initialNodeCount": 1,
        "nodeConfig": {"machineType": "e2-standard-4"},  # Kubeflow Pipelines needs more than GKE's default
        "deletionProtection": False,
        "releaseChannel": {"channel": release_channel},
        "workloadIdentityConfig": {"workloadPool": f"{project}.svc.id.goog"},
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {"allowExternalTraffic": dns_endpoint},
            "ipEndpointsConfig": {"enabled": not dns_endpoint},
        },
    }
    return FakeProvider(GCP, store, clusters).seed(GKE_CLUSTER, inputs)


def seed_aks(
    store: Store,
    clusters: Clusters,
    *,
    subscription: str,
    resource_group: str,
    name: str,
    location: str,
    system_machine: str = "Standard_D4s_v5",
    version: str | None = None,
) -> str:
    """Create a cluster on AKS, with one system pool, an OIDC issuer, workload identity and Entra.

    Args:
        store: the fake cloud's store.
        clusters: control planes.
        subscription: id of the subscription.
        resource_group: name of the resource group, which is created if it does not exist.
        name: name of the cluster.
        location: region.
        system_machine: machine size of the system pool.
        version: Kubernetes version; Azure's default if None.

    Returns:
        The cluster's id.
    """
    system = {"name": "system", "mode": "System", "vmSize": system_machine, "count": 2, "osType": "Linux"}
    inputs: dict[str, Any] = {
        "resourceName": name,
        "dnsPrefix": name.replace("_", "-"),
        "identity": {"type": "SystemAssigned"},
        "aadProfile": {"managed": True, "enableAzureRBAC": True},
        "disableLocalAccounts": True,
        "oidcIssuerProfile": {"enabled": True},
        "securityProfile": {"workloadIdentity": {"enabled": True}},
        "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"},
        "agentPoolProfiles": [system],
        **({"kubernetesVersion": version} if version else {}),
    }
    return _in_group(store, clusters, subscription, resource_group, location)(AKS_CLUSTER, inputs)


def seed_subnet(store: Store, clusters: Clusters, subnet: str, *, location: str, prefix: str) -> None:
    """Create a subnet of Azure, with its network and resource group.

    Args:
        store: the fake cloud's store.
        clusters: control planes.
        subnet: resource id of the subnet.
        location: region.
        prefix: address range of the subnet, and of its network if that does not exist.
    """
    network = {"virtualNetworkName": subnet.split("/")[-3]}
    group = ids.last(ids.group_of(subnet))
    seed = _in_group(store, clusters, subnet.split("/")[2], group, location)
    seed(VNET, {**network, "addressSpace": {"addressPrefixes": [prefix]}})
    seed(SUBNET, {**network, "subnetName": ids.last(subnet), "addressPrefix": prefix})


def seed_found(store: Store, clusters: Clusters, found: Found) -> None:
    """Create a cluster that a document describes, with its pools and schedules."""
    (cluster,) = found.clusters
    if found.cloud is CloudKind.GKE:
        provider = FakeProvider(GCP, store, clusters)
        for item in found.resources:
            # The document has all pools; none is GKE's own.
            own = {"removeDefaultNodePool": True} if item.type == GKE_CLUSTER else {}
            provider.seed(item.type, {**item.inputs, **own})
        return
    group, location = str(cluster.inputs["resourceGroupName"]), str(cluster.inputs["location"])
    seed = _in_group(store, clusters, found.account, group, location)
    system = [
        {"name": pool.name, **{key: value for key, value in pool.inputs.items() if key not in _NAMES}}
        for pool in found.pools
        if pool.inline
    ]
    for item in found.resources:
        own = {"agentPoolProfiles": system} if item.type == AKS_CLUSTER else {}
        if not item.inline:
            seed(item.type, {**item.inputs, **own})


_NAMES: Final = ("agentPoolName", "resourceName", "resourceGroupName")


def _in_group(
    store: Store, clusters: Clusters, subscription: str, group: str, location: str
) -> Callable[[str, Mapping[str, Any]], str]:
    """Return a function that creates resources in a resource group, which is created if it does not exist."""
    settings = {"subscriptionId": subscription, "location": location}
    provider = FakeProvider(AZURE, store, clusters, settings)
    within = {"resourceGroupName": group}
    provider.seed(GROUP, within)
    return lambda token, inputs: provider.seed(token, {**within, **inputs})
