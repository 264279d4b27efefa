"""Networks of GPU NICs, beside the cluster's own, for pools with GPUDirect."""

from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_gcp import compute

from ebbtide.declaration.catalog.gpu_direct import GpuNetwork, Strategy, networks_of, vpcs_of
from ebbtide.declaration.model.cluster import Cluster

_MTU: Final = 8244
"""MTU for GPUDirect-TCPXO (GKE docs, gpu-bandwidth-gpudirect-tcpx, 2026); a RoCE network has 8896 by
default."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A node's additional network interface: its VPC and its subnet."""

    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNetworksArgs:
    """Arguments of GPU networks.

    Attributes:
        declaration: the whole declaration; pools, region and range are read from it.
        project: project id of the cluster.
        range: range of all subnets.
    """

    declaration: Cluster
    project: str
    range: str


class GpuNetworks(pulumi.ComponentResource):
    """A VPC for each gVNIC, and one of the zone's RoCE network profile with a subnet for each RDMA NIC.

    A gVNIC's network admits traffic from the whole range; a RoCE network admits all, and takes no firewall
    rule. Networks cost nothing (VPC docs, rdma-network-profiles and pricing, 2026).
    """

    interfaces: dict[str, Interface]
    """Interfaces by name of the network in Kubernetes."""

    def __init__(self, name: str, args: GpuNetworksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:GpuNetworks", name, {}, opts)
        self._args = args
        self.interfaces = {}
        for vpc, networks in vpcs_of(args.declaration.gpu_networks).items():
            self._create(name, vpc, networks)
        self.register_outputs({})

    def interfaces_of(self, strategy: Strategy | None) -> tuple[Interface, ...]:
        """Return the additional interfaces of a pool's nodes, in their order."""
        return tuple(self.interfaces[network.name] for network in networks_of([strategy]))

    def _create(self, name: str, vpc: str, networks: tuple[GpuNetwork, ...]) -> None:
        args, inside = self._args, pulumi.ResourceOptions(parent=self)
        own = args.declaration.name
        is_rdma = networks[0].mode == "RDMA"
        zone = args.declaration.gpu_zone
        profile = f"projects/{args.project}/global/networkProfiles/{zone}-vpc-roce"
        kind: dict[str, Any] = {"network_profile": profile} if is_rdma else {"mtu": _MTU}
        network = compute.Network(
            f"{name}-{vpc}", name=f"{own}-{vpc}", auto_create_subnetworks=False, **kind, opts=inside
        )
        for item in networks:
            subnet = compute.Subnetwork(
                f"{name}-{item.name}-subnet",
                name=f"{own}-{item.name}",
                network=network.id,
                region=args.declaration.site.region,
                ip_cidr_range=item.range_of(args.range),
                opts=inside,
            )
            self.interfaces[item.name] = Interface(network.name, subnet.name)
        if not is_rdma:
            compute.Firewall(
                f"{name}-{vpc}-internal",
                name=f"{own}-{vpc}-internal",
                network=network.name,
                allows=[{"protocol": protocol} for protocol in ("tcp", "udp", "icmp")],
                source_ranges=[args.range],
                opts=inside,
            )
