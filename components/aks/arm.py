"""Azure resources by their type token, where importing the SDK's class for them would cost half a preview.

`pulumi_azure_native.network` is one module: importing it for two classes takes 0.6 s, `authorization` and
`resources` another 0.15 s (3.29.0, 2 cores), and a whole preview is to take 1.2 s. What goes to the
provider is the same; a test holds the names of the fields against the SDK's own. `containerservice` and
`managedidentity`, whose fields are many or whose module is small, are used as they are.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

import pulumi

from ..inputs import given


@cache
def _provider_version() -> str:
    """The version of azure-native, without which a program without a provider of its own would load
    another."""
    return version("pulumi-azure-native")


def _versioned(opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(version=_provider_version()))


class ResourceGroup(pulumi.CustomResource):
    """A resource group (`azure-native:resources:ResourceGroup`)."""

    name: pulumi.Output[str]

    def __init__(
        self, name: str, *, group: str, location: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
    ) -> None:
        inputs = {"resourceGroupName": group, "location": location, "tags": dict(tags), "name": None}
        super().__init__("azure-native:resources:ResourceGroup", name, inputs, _versioned(opts))


class VirtualNetwork(pulumi.CustomResource):
    """A virtual network (`azure-native:network:VirtualNetwork`), its subnets apart.

    The provider keeps subnets that are not declared inside the network, where they are resources of their
    own.
    """

    name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        group: pulumi.Input[str],
        network: str,
        location: str,
        addresses: str,
        tags: Mapping[str, str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        inputs = {
            "resourceGroupName": group,
            "virtualNetworkName": network,
            "location": location,
            "addressSpace": {"addressPrefixes": [addresses]},
            # The SDK's own defaults, as in the subnet below.
            "enableDdosProtection": False,
            "enableVmProtection": False,
            "tags": dict(tags),
            "name": None,
        }
        super().__init__("azure-native:network:VirtualNetwork", name, inputs, _versioned(opts))


class Subnet(pulumi.CustomResource):
    """A subnet (`azure-native:network:Subnet`) without Azure's default way out, which nodes do not need.

    AKS made its own subnets private in 2026, when Azure retired that way (azure-aks-docs,
    vm-default-outbound-access-retirement, 2026-01): nodes go out through the cluster's load balancer.
    """

    def __init__(
        self,
        name: str,
        *,
        group: pulumi.Input[str],
        network: pulumi.Input[str],
        subnet: str,
        addresses: str,
        opts: pulumi.ResourceOptions,
    ) -> None:
        inputs = {
            "resourceGroupName": group,
            "virtualNetworkName": network,
            "subnetName": subnet,
            "addressPrefix": addresses,
            "defaultOutboundAccess": False,
            "privateEndpointNetworkPolicies": "Disabled",
            "privateLinkServiceNetworkPolicies": "Enabled",
        }
        super().__init__("azure-native:network:Subnet", name, inputs, _versioned(opts))


class RoleAssignment(pulumi.CustomResource):
    """A role on a scope for someone (`azure-native:authorization:RoleAssignment`); the provider makes up
    its name.

    `principal_type` spares Azure from looking up a principal that is too new to be found everywhere. None
    where it is not known.
    """

    def __init__(
        self,
        name: str,
        *,
        scope: pulumi.Input[str],
        role: str,
        principal: pulumi.Input[str],
        principal_type: str | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        inputs = given(
            {
                "scope": scope,
                "roleDefinitionId": role,
                "principalId": principal,
                "principalType": principal_type,
            }
        )
        super().__init__("azure-native:authorization:RoleAssignment", name, inputs, _versioned(opts))


def deployer(parent: pulumi.Resource) -> pulumi.Output[str]:
    """Object id of whoever runs the program: the user or service principal that the parent's provider signs
    in as."""
    opts = pulumi.InvokeOutputOptions(parent=parent, version=_provider_version())
    found = pulumi.runtime.invoke_output("azure-native:authorization:getClientConfig", {}, opts)
    return found.apply(lambda config: str(config["objectId"]))
