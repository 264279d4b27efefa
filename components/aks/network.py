"""The network that a cluster's nodes stand in."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from ebbtide.model import AksNetwork

from .arm import Subnet, VirtualNetwork

_SUBNET = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """What a network is made from.

    Attributes:
        name: what the virtual network is called in its resource group.
        resource_group: name of that group.
        location: region.
        network: range of the nodes, or the subnet that is there already.
        labels: labels of the bill.
    """

    name: str
    resource_group: pulumi.Input[str]
    location: str
    network: AksNetwork
    labels: Mapping[str, str]


class Network(pulumi.ComponentResource):
    """A virtual network with one subnet for nodes; pods have an overlay of their own.

    Network and subnet are two resources: declared inside the network, a subnet that something else adds
    would be removed by the next update. Nothing is billed. A subnet that is there already is used, and
    nothing is made.
    """

    subnet: pulumi.Output[str]
    """Resource id of the nodes' subnet."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:Network", name, {}, opts)
        if args.network.subnet is not None:
            self.subnet = pulumi.Output.from_input(args.network.subnet)
        else:
            self.subnet = _own(name, args, self).id
        self.register_outputs({"subnet": self.subnet})


def _own(name: str, args: NetworkArgs, parent: Network) -> Subnet:
    network = VirtualNetwork(
        f"{name}-vnet",
        group=args.resource_group,
        network=args.name,
        location=args.location,
        addresses=args.network.nodes,
        tags=args.labels,
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return Subnet(
        f"{name}-subnet",
        group=args.resource_group,
        network=network.name,
        subnet=_SUBNET,
        addresses=args.network.nodes,
        opts=pulumi.ResourceOptions(parent=parent),
    )
