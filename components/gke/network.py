"""The private network of a cluster's nodes, and networks of GPU NICs beside it, for pools with GPUDirect."""

from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_gcp import compute

from ebbtide.declaration.catalog.gpu_direct import GpuNetwork, Strategy, networks_of, vpcs_of
from ebbtide.declaration.model.cloud import Gke, GkeNetwork
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.physical_names import ROUTER_NAT, fitting

from ..replacement import refusing_fixed

PODS_RANGE = "pods"
SERVICES_RANGE = "services"

_MTU: Final = 8244
"""MTU for GPUDirect-TCPXO (GKE docs, gpu-bandwidth-gpudirect-tcpx, 2026); a RoCE network has 8896 by
default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """Arguments of a network.

    Attributes:
        name: name of the VPC and its parts.
        region: region of the subnet.
        network: address ranges of nodes, pods and services, or the existing network.
    """

    name: str
    region: str
    network: GkeNetwork


class Network(pulumi.ComponentResource):
    """A VPC-native network without public addresses, with Cloud NAT for egress.

    Private nodes reach registries and data sets through NAT, so pools depend on it. NAT is billed by the hour
    and by the number of machines that use it: the cost is close to zero without nodes. An existing network
    has its own egress, and nothing is created.
    """

    vpc: pulumi.Output[str]
    subnet: pulumi.Output[str]
    pods_range: pulumi.Output[str]
    services_range: pulumi.Output[str] | None
    """None for a range that GKE manages."""
    egress: tuple[pulumi.Resource, ...]
    """Prerequisites of a node's first download."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:Network", name, {}, opts)
        declared = args.network
        if declared.vpc and declared.subnet and declared.pods_range:
            self.egress = ()
            self.vpc = pulumi.Output.from_input(declared.vpc)
            self.subnet = pulumi.Output.from_input(declared.subnet)
            self.pods_range = pulumi.Output.from_input(declared.pods_range)
            services = declared.services_range
            self.services_range = pulumi.Output.from_input(services) if services else None
        else:
            vpc, subnet, nat = _own(name, args, self)
            self.egress = (nat,)
            self.vpc = vpc.self_link
            self.subnet = subnet.self_link
            self.pods_range = pulumi.Output.from_input(PODS_RANGE)
            self.services_range = pulumi.Output.from_input(SERVICES_RANGE)
        self.register_outputs(
            {
                "vpc": self.vpc,
                "subnet": self.subnet,
                "pods_range": self.pods_range,
                "services_range": self.services_range,
            }
        )


def _own(
    name: str, args: NetworkArgs, parent: Network
) -> "tuple[compute.Network, compute.Subnetwork, compute.RouterNat]":
    inside = pulumi.ResourceOptions(parent=parent)
    vpc = compute.Network(f"{name}-vpc", name=args.name, auto_create_subnetworks=False, opts=inside)
    subnet = compute.Subnetwork(
        f"{name}-subnet",
        name=args.name,
        network=vpc.id,
        region=args.region,
        ip_cidr_range=args.network.nodes,
        secondary_ip_ranges=[
            {"range_name": PODS_RANGE, "ip_cidr_range": args.network.pods},
            {"range_name": SERVICES_RANGE, "ip_cidr_range": args.network.services},
        ],
        private_ip_google_access=True,
        opts=pulumi.ResourceOptions(parent=parent, hooks=refusing_fixed("gcp:compute/subnetwork:Subnetwork")),
    )
    router = compute.Router(f"{name}-router", name=args.name, network=vpc.id, region=args.region, opts=inside)
    nat = compute.RouterNat(
        f"{name}-nat",
        name=fitting(args.name, ROUTER_NAT),
        router=router.name,
        region=args.region,
        nat_ip_allocate_option="AUTO_ONLY",
        source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
        subnetworks=[{"name": subnet.id, "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]}],
        log_config={"enable": True, "filter": "ERRORS_ONLY"},
        opts=inside,
    )
    return vpc, subnet, nat


@dataclass(frozen=True, slots=True)
class Interface:
    """A node's additional network interface: its VPC and its subnet."""

    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]


class GpuNetworks(pulumi.ComponentResource):
    """A VPC for each gVNIC, and one of the zone's RoCE network profile with a subnet for each RDMA NIC.

    A gVNIC's network admits traffic from the whole range; a RoCE network admits all, and takes no firewall
    rule. Networks cost nothing (VPC docs, rdma-network-profiles and pricing, 2026).
    """

    interfaces: dict[str, Interface]
    """Interfaces by name of the network in Kubernetes."""

    def __init__(
        self, name: str, declaration: Cluster, cloud: Gke, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ebbtide:gke:GpuNetworks", name, {}, opts)
        self.interfaces = {}
        for vpc, networks in vpcs_of(declaration.gpu_networks).items():
            self._create(name, vpc, networks, declaration, cloud)
        self.register_outputs({})

    def interfaces_of(self, strategy: Strategy | None) -> tuple[Interface, ...]:
        """Return the additional interfaces of a pool's nodes, in their order."""
        return tuple(self.interfaces[network.name] for network in networks_of([strategy]))

    def _create(
        self, name: str, vpc: str, networks: tuple[GpuNetwork, ...], declaration: Cluster, cloud: Gke
    ) -> None:
        own, inside = declaration.name, pulumi.ResourceOptions(parent=self)
        is_rdma = networks[0].mode == "RDMA"
        zone = declaration.gpu_zone
        profile = f"projects/{cloud.project}/global/networkProfiles/{zone}-vpc-roce"
        kind: dict[str, Any] = {"network_profile": profile} if is_rdma else {"mtu": _MTU}
        network = compute.Network(
            f"{name}-{vpc}", name=f"{own}-{vpc}", auto_create_subnetworks=False, **kind, opts=inside
        )
        for item in networks:
            subnet = compute.Subnetwork(
                f"{name}-{item.name}-subnet",
                name=f"{own}-{item.name}",
                network=network.id,
                region=declaration.site.region,
                ip_cidr_range=item.range_of(cloud.network.gpus),
                opts=inside,
            )
            self.interfaces[item.name] = Interface(network.name, subnet.name)
        if not is_rdma:
            compute.Firewall(
                f"{name}-{vpc}-internal",
                name=f"{own}-{vpc}-internal",
                network=network.name,
                allows=[{"protocol": protocol} for protocol in ("tcp", "udp", "icmp")],
                source_ranges=[cloud.network.gpus],
                opts=inside,
            )
