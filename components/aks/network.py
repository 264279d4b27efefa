"""The network of a cluster's nodes."""

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network

from ebbtide.declaration.model.cloud import AksNetwork
from ebbtide.declaration.model.physical_names import VIRTUAL_NETWORK, fitting

from ..replacement import refusing_fixed
from ..topology import Labels

_SUBNET = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """Arguments of a network.

    Attributes:
        name: name of the virtual network.
        resource_group: name of the resource group.
        network: range of the nodes, or the existing subnet.
        storage: whether the nodes need access to storage accounts that deny other networks.
    """

    name: str
    resource_group: pulumi.Input[str]
    location: str
    network: AksNetwork
    storage: bool = False
    labels: Labels


class Network(pulumi.ComponentResource):
    """A virtual network with one subnet for nodes; pods use an overlay network.

    Network and subnet are two resources: if subnets were declared inside the network, the next update would
    remove any that something else adds. Neither is billed. For an existing subnet, and for a
    network of AKS's own, nothing is created.
    """

    subnet: pulumi.Output[str] | None
    """Resource id of the nodes' subnet; None for AKS's own."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:Network", name, {}, opts)
        if args.network.subnet is not None:
            self.subnet = pulumi.Output.from_input(args.network.subnet)
        elif args.network.managed:
            self.subnet = None
        else:
            self.subnet = _own(name, args, self).id
        self.register_outputs({"subnet": self.subnet})


def _own(name: str, args: NetworkArgs, parent: Network) -> "network.Subnet":
    """Create the network and its subnet, without Azure's default outbound access.

    AKS made its own subnets private in 2026, when Azure retired that access (azure-aks-docs,
    vm-default-outbound-access-retirement, 2026-01): egress is through the cluster's load balancer.
    """
    vnet = network.VirtualNetwork(
        f"{name}-vnet",
        virtual_network_name=fitting(args.name, VIRTUAL_NETWORK),
        resource_group_name=args.resource_group,
        location=args.location,
        address_space={"address_prefixes": [args.network.nodes]},
        tags=dict(args.labels),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return network.Subnet(
        f"{name}-subnet",
        subnet_name=_SUBNET,
        virtual_network_name=vnet.name,
        resource_group_name=args.resource_group,
        address_prefix=args.network.nodes,
        default_outbound_access=False,
        service_endpoints=[{"service": "Microsoft.Storage"}] if args.storage else None,
        opts=pulumi.ResourceOptions(parent=parent, hooks=refusing_fixed("azure-native:network:Subnet")),
    )
