"""Existing clusters and subnets, created outside of any stack."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.operations.adopting.found import Found
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.kinds import CLUSTER, GROUP, IDENTITY, NETWORK, SUBNET, WORKSPACE
from ebbtide_rehearsal.cloud.azure.provider import AzureProvider
from ebbtide_rehearsal.cloud.provider import Call, Clusters
from ebbtide_rehearsal.cloud.store import Store


def seed_cluster(
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
    """Create a cluster outside of any program, with one system pool, an OIDC issuer, workload identity and
    Entra.

    Args:
        store: the fake cloud's state.
        clusters: control planes.
        subscription: id of the subscription.
        resource_group: name of the resource group, which is created if it does not exist.
        location: region.
        system_machine: machine size of the system pool.
        version: Kubernetes version; Azure's default if None.

    Returns:
        The cluster's id.
    """
    azure = AzureProvider(store, clusters).configured({"subscriptionId": subscription, "location": location})
    _seed(azure, store, GROUP, resource_group, {"resourceGroupName": resource_group, "location": location})
    system = {"name": "system", "mode": "System", "vmSize": system_machine, "count": 2, "osType": "Linux"}
    inputs: dict[str, Any] = {
        "resourceGroupName": resource_group,
        "resourceName": name,
        "location": location,
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
    return _seed(azure, store, CLUSTER, name, inputs)


def seed_found(store: Store, clusters: Clusters, found: Found) -> None:
    """Create a cluster that a document describes, with its pools and schedules, outside of any program. Its
    identities and its workspace exist, too."""
    (cluster,) = found.clusters
    group, location = str(cluster.inputs["resourceGroupName"]), str(cluster.inputs["location"])
    settings = {"subscriptionId": found.account, "location": location}
    azure = AzureProvider(store, clusters).configured(settings)
    within = {"resourceGroupName": group, "location": location}
    _seed(azure, store, GROUP, group, within)
    for identity in Inputs(cluster.inputs).texts("identity.userAssignedIdentities"):
        name = ids.last(identity)
        _seed(azure, store, IDENTITY, name, {**within, "resourceName": name})
    workspace = ids.last(Inputs(cluster.inputs).text(_WORKSPACE))
    if workspace:
        _seed(azure, store, WORKSPACE, workspace, {**within, "workspaceName": workspace})
    for item in found.resources:
        inputs = dict(item.inputs)
        if item.type == CLUSTER:
            system = (pool for pool in found.pools if pool.inline)
            inputs["agentPoolProfiles"] = [
                {"name": pool.name, **{key: value for key, value in pool.inputs.items() if key not in _NAMES}}
                for pool in system
            ]
        if not item.inline:
            _seed(azure, store, item.type, item.name, inputs)


_WORKSPACE: Final = "addonProfiles.omsagent.config.logAnalyticsWorkspaceResourceID"
_NAMES: Final = ("agentPoolName", "resourceName", "resourceGroupName")


def seed_subnet(store: Store, clusters: Clusters, subnet: str, *, location: str, prefix: str) -> None:
    """Create a subnet outside of any program, with its network and resource group.

    Args:
        store: the fake cloud's state.
        clusters: control planes.
        subnet: resource id of the subnet.
        location: region.
        prefix: address range of the subnet, and of its network if that does not exist.
    """
    group, network = ids.group_of(subnet), subnet.rpartition("/subnets/")[0]
    subscription = subnet.split("/")[2]
    azure = AzureProvider(store, clusters).configured({"subscriptionId": subscription, "location": location})
    within = {"resourceGroupName": ids.last(group), "location": location}
    _seed(azure, store, GROUP, ids.last(group), within)
    space = {"virtualNetworkName": ids.last(network), "addressSpace": {"addressPrefixes": [prefix]}}
    _seed(azure, store, NETWORK, ids.last(network), {**within, **space})
    _extend(store, network, prefix)
    own = {
        "resourceGroupName": ids.last(group),
        "virtualNetworkName": ids.last(network),
        "subnetName": ids.last(subnet),
        "addressPrefix": prefix,
    }
    _seed(azure, store, SUBNET, ids.last(subnet), own)


def _extend(store: Store, network: str, prefix: str) -> None:
    """Add a range to the address space of a network."""
    found = store.get(AzureProvider.package, network)
    assert found  # noqa: S101 - it was created just now
    space = found.state["addressSpace"]
    prefixes = list(dict.fromkeys([*space["addressPrefixes"], prefix]))
    store.put(found.having(addressSpace={**space, "addressPrefixes": prefixes}))


def _seed(azure: AzureProvider, store: Store, token: str, name: str, inputs: Mapping[str, Any]) -> str:
    """Create a resource outside of any program, unless it exists."""
    identity = azure.identity(token, inputs)
    if store.get(azure.package, identity) is None:
        azure.create(Call(token, name, ""), inputs)
    return identity
