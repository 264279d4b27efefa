"""The fake Azure without an engine: a provider, called in plain data."""

from pathlib import Path
from typing import Any

from ebbtide_rehearsal.cloud.azure.provider import AzureProvider
from ebbtide_rehearsal.cloud.provider import Call, Created, DiffResult, Properties, Read
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/train"
SUBNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/train/subnets/nodes"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/control-plane"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/train"
ROLES = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"
NETWORK_CONTRIBUTOR = f"{ROLES}/4d97b98b-1d4f-4787-a291-c67834d212e7"

SYSTEM: dict[str, Any] = {
    "name": "system",
    "mode": "System",
    "type": "VirtualMachineScaleSets",
    "vmSize": "Standard_D4s_v5",
    "enableAutoScaling": True,
    "minCount": 2,
    "maxCount": 4,
    "osDiskSizeGB": 64,
    "vnetSubnetID": SUBNET,
}

MANAGED_CLUSTER: dict[str, Any] = {
    "resourceGroupName": "train",
    "resourceName": "train",
    "dnsPrefix": "train",
    "identity": {"type": "UserAssigned", "userAssignedIdentities": [IDENTITY]},
    "aadProfile": {"managed": True, "enableAzureRBAC": True},
    "disableLocalAccounts": True,
    "oidcIssuerProfile": {"enabled": True},
    "securityProfile": {"workloadIdentity": {"enabled": True}},
    "networkProfile": {
        "networkPlugin": "azure",
        "networkPluginMode": "overlay",
        "networkDataplane": "cilium",
        "networkPolicy": "cilium",
        "podCidr": "10.244.0.0/16",
        "serviceCidr": "10.0.0.0/16",
        "dnsServiceIP": "10.0.0.10",
        "loadBalancerSku": "standard",
    },
    "agentPoolProfiles": [SYSTEM],
}

POOL: dict[str, Any] = {
    "resourceGroupName": "train",
    "resourceName": "train",
    "agentPoolName": "work",
    "mode": "User",
    "type": "VirtualMachineScaleSets",
    "vmSize": "Standard_D8s_v5",
    "enableAutoScaling": True,
    "minCount": 0,
    "maxCount": 10,
    "osDiskSizeGB": 100,
    "vnetSubnetID": SUBNET,
    "nodeLabels": {"ebbtide.dev/pool": "work"},
}

SPOT: dict[str, Any] = {
    **POOL,
    "scaleSetPriority": "Spot",
    "nodeLabels": {"ebbtide.dev/pool": "work", "kubernetes.azure.com/scalesetpriority": "spot"},
    "nodeTaints": ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"],
}


class Azure:
    """A provider for one subscription, and what is behind it."""

    def __init__(self, directory: Path) -> None:
        self.store = Store(directory / "cloud.sqlite")
        self.planes = FakeControlPlanes()
        whole = AzureProvider(self.store, self.planes)
        self.provider = whole.configured({"subscriptionId": SUBSCRIPTION, "location": "eastus"})

    def make(self, kind: str, /, **inputs: Any) -> Created:
        """Check a resource and make it; `kind` without the package, such as `network:Subnet`."""
        call = Call(f"azure-native:{kind}", "it", f"urn:pulumi:dev::p::azure-native:{kind}::it")
        checked, failures = self.provider.check(call, {}, inputs)
        assert not failures
        return self.provider.create(call, checked)

    def change(self, kind: str, made: Created, before: Properties, /, **inputs: Any) -> Properties:
        """Change a resource that was made."""
        call = Call(f"azure-native:{kind}", "it", f"urn:pulumi:dev::p::azure-native:{kind}::it")
        old, _ = self.provider.check(call, {}, before)
        new, failures = self.provider.check(call, old, inputs)
        assert not failures
        return self.provider.update(call, made.id, Read(made.id, old, made.state), new)

    def plan(self, kind: str, before: Properties, after: Properties) -> DiffResult:
        """Compare a resource's changed inputs."""
        call = Call(f"azure-native:{kind}", "it", "")
        old, _ = self.provider.check(call, {}, before)
        new, _ = self.provider.check(call, old, after)
        return self.provider.diff(call, "id", Read("id", old, {}), new)

    def remove(self, kind: str, identity: str) -> None:
        """Delete a resource."""
        self.provider.delete(Call(f"azure-native:{kind}", "it", ""), identity, {})

    def ids(self) -> list[str]:
        """Ids of all that is in the cloud."""
        return [resource.id for resource in self.store.resources()]

    def with_network(self) -> "Azure":
        """The same with a group, a network with a subnet, and an identity that may join it."""
        self.make("resources:ResourceGroup", resourceGroupName="train")
        self.make(
            "network:VirtualNetwork",
            resourceGroupName="train",
            virtualNetworkName="train",
            addressSpace={"addressPrefixes": ["10.224.0.0/16"]},
        )
        within = {"resourceGroupName": "train", "virtualNetworkName": "train"}
        self.make("network:Subnet", **within, subnetName="nodes", addressPrefix="10.224.0.0/16")
        identity = self.make(
            "managedidentity:UserAssignedIdentity", resourceGroupName="train", resourceName="control-plane"
        )
        self.make(
            "authorization:RoleAssignment",
            scope=SUBNET,
            roleDefinitionId=NETWORK_CONTRIBUTOR,
            principalId=identity.state["principalId"],
            principalType="ServicePrincipal",
        )
        return self

    def with_cluster(self) -> "Azure":
        """The same with a cluster as well."""
        self.with_network().make_cluster()
        return self

    def make_cluster(self, **changes: Any) -> Created:
        """Make the cluster, with other inputs where they are given."""
        return self.make("containerservice:ManagedCluster", **{**MANAGED_CLUSTER, **changes})
