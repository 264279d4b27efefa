"""Networks of the cluster: address ranges of nodes, pods and clients, subnets, and egress."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from itertools import combinations
from typing import cast

from ebbtide.declaration.catalog.gpu_direct import SUBNET_BITS
from ebbtide.declaration.model.cloud import Aks, AksNetwork, Gke, GkeNetwork
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    NO_POOL,
    Severity,
    cluster_rule,
    pools_of,
    service_name,
)
from ebbtide.values.cloud_kind import CloudKind, by_cloud

_PATH = "cloud.network"
_AKS_PLANNING = "azure-aks-docs concepts-network-ip-address-planning.md (2026-04-16)"
_AKS_OVERLAY = "azure-aks-docs concepts-network-azure-cni-overlay.md (2026-07-31)"
_VIRTUAL_NETWORK = "Azure docs, virtual-networks-faq (learn.microsoft.com/azure/virtual-network, 2026)"
_VPC = "VPC docs, subnets: IPv4 subnet ranges (cloud.google.com/vpc, 2026)"
_ALIAS_IPS = "GKE docs, alias-ips: range management (2026)"
_OUTBOUND_DOCS = "azure-aks-docs egress-outboundtype.md (2026-08-05)"
_MANAGED_NETWORK = "managedNATGateway"
_MANAGED_RANGE = "10.224.0.0/12"
"""Range of the network that AKS creates (`az network vnet show` of one in public repositories, 2026)."""
_OWN_EGRESS = {"userAssignedNATGateway": "a NAT gateway", "userDefinedRouting": "a route to the internet"}
_CIDR_SOURCE = f"RFC 4632; GKE docs, alias-ips (2026); {_AKS_PLANNING}"


_RESERVED: Mapping[CloudKind, Mapping[str, tuple[str, ...]]] = by_cloud(
    gke={
        "Google Cloud": (
            *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32"),
            *("199.36.153.4/30", "199.36.153.8/30"),  # Its private virtual IP addresses.
        ),
    },
    aks={
        # azure-aks-docs concepts-network-cni-overview.md (2026-07-10); Azure/AKS#2234.
        "AKS": ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24"),
        # The FAQ excludes them from virtual networks; the operating system routes them nowhere else either.
        "Azure": ("127.0.0.0/8", "168.63.129.16/32", "224.0.0.0/4", "255.255.255.255/32"),
    },
)
"""Ranges that no node, pod or service can have, by cloud and by who reserves them."""


_PRIVATE = [
    IPv4Network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24"),
        *("198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15", "240.0.0.0/4"),
    )
]
"""Ranges that VPC supports by an RFC each (VPC docs, subnets: valid IPv4 ranges; 2026); all others are public
addresses, used privately."""


_PREFIXES: Mapping[CloudKind, Mapping[str, tuple[int, int]]] = by_cloud(
    # Of a subnet and its secondary ranges that are not managed by GKE.
    gke={"nodes": (8, 29), "pods": (9, 24), "services": (16, 28), "gpus": (8, 29 - SUBNET_BITS)},
    aks={
        "nodes": (8, 29),  # A subnet's, in the FAQ of virtual networks.
        "pods": (0, 24),  # A node takes a /24 (concepts-network-azure-cni-overlay.md).
        # "Smaller than /12"; 8 addresses at least (kubernetes 1.34, pkg/controlplane, ServiceIPRange).
        "services": (13, 29),
    },
)
"""Shortest and longest prefix of each range, by cloud."""


_RESERVED_ADDRESSES = by_cloud(gke=4, aks=5)
"""Addresses of a subnet that no node can have (VPC docs, subnets; Azure docs, virtual-networks-faq; 2026)."""


_GKE_PODS_PER_NODE = 110
_AKS_NODE_ADDRESSES = 256
_PROJECT_OF_LINK = re.compile(r"projects/([^/]+)/")
_REGION_OF_LINK = re.compile(r"regions/([^/]+)/")


def parsed_range(text: str) -> IPv4Network | None:
    """Return a range in CIDR notation; None for any other text."""
    try:
        return IPv4Network(text) if "/" in text else None
    except ValueError:
        return None


def _unparsed(path: str, text: str) -> Fault:
    """Return the fault of a malformed range, with the range that was probably meant."""
    try:
        network = IPv4Network(text, strict=False)
    except ValueError:
        return Fault(
            path,
            f"{text} is not an IPv4 range in CIDR notation.",
            NO_CLUSTER,
            "Write an address and a prefix length, such as 10.0.0.0/20.",
        )
    if "/" not in text:
        return Fault(path, f"{text} is an address, not a range.", NO_CLUSTER, f"Write {network}.")
    return Fault(
        path,
        f"{text} has host bits set: the bits after the prefix must be zero.",
        "The cluster could not be created, or would permanently differ from what is declared.",
        f"Write {network}, or {text.partition('/')[0]}/32 for a single address.",
    )


def _parsed_ranges(cluster: Cluster) -> dict[str, IPv4Network]:
    """Return the valid ranges of `_ranges`."""
    ranges = _ranges(cluster).items()
    return {field: network for field, text in ranges if (network := parsed_range(text))}


def _ranges(cluster: Cluster) -> dict[str, str]:
    """Return the declared ranges by field; none of the nodes for an existing network, AKS's own for
    one that it manages, and none of GPU NICs that no pool has."""
    network = cluster.cloud.network
    gpus = {"gpus": network.gpus} if isinstance(network, GkeNetwork) and cluster.gpu_networks else {}
    match network:
        case GkeNetwork(vpc=None):
            return {"nodes": network.nodes, "pods": network.pods, "services": network.services, **gpus}
        case AksNetwork(subnet=None, managed=False):
            return {"nodes": network.nodes, "pods": network.pods, "services": network.services}
        case GkeNetwork():
            return gpus
        case AksNetwork():
            nodes = {"nodes": _MANAGED_RANGE} if network.managed else {}
            return {**nodes, "pods": network.pods, "services": network.services}


@cluster_rule("valid IPv4 ranges", _CIDR_SOURCE)
def _ranges_parse(cluster: Cluster) -> Iterator[Fault]:
    for field, text in _ranges(cluster).items():
        if parsed_range(text) is None:
            yield _unparsed(f"{_PATH}.{field}", text)
    for index, text in enumerate(cluster.cloud.access.networks):
        if parsed_range(text) is None:
            yield _unparsed(f"cloud.access.networks[{index}]", text)


@cluster_rule(
    "AKS-managed network",
    f"{_OUTBOUND_DOCS}; azure-aks-docs private-clusters.md (2026-08): a zone is linked to the network",
    CloudKind.AKS,
)
def _managed(cluster: Cluster) -> Iterator[Fault]:
    """Refuse settings of a network of the stack's own: AKS determines those of its network."""
    cloud = cluster.cloud
    if not isinstance(cloud, Aks) or not cloud.network.managed:
        return
    for field in ("nodes", "subnet"):
        if getattr(cloud.network, field) != AksNetwork.model_fields[field].default:
            yield Fault(
                f"{_PATH}.{field}",
                f"AKS manages the network, and {field} is declared.",
                "The field would have no effect.",
                f"Remove {field}, or remove managed.",
            )
    if "/" in cloud.access.private_dns_zone:
        yield Fault(
            "cloud.access.privateDnsZone",
            "AKS manages the network, and the private DNS zone is declared.",
            NO_CLUSTER,
            "Write system or none, or remove managed.",
        )


@cluster_rule(
    "subnets of pools in one network",
    "azure-aks-docs create-node-pools.md (2026): subnets of node pools are in one virtual network",
    CloudKind.AKS,
)
def _subnets_of_pools(cluster: Cluster) -> Iterator[Fault]:
    network = cluster.cloud.network.subnet
    for pool in pools_of(cluster):
        subnet = pool.pool.subnet
        if subnet is None or "/subnets/" not in subnet:
            continue
        if network is None and cluster.cloud.existing is None:
            yield Fault(
                pool.at("subnet"),
                "The network is created with the cluster, and this subnet is in another one.",
                NO_CLUSTER,
                f"Write a subnet of the same network under {_PATH}.subnet, or remove subnet.",
            )
        elif network is not None and _vnet(subnet) != _vnet(network):
            yield Fault(
                pool.at("subnet"),
                f"The subnet is in another network than {_PATH}.subnet.",
                NO_POOL,
                f"Write a subnet of {network.partition('/subnets/')[0]}.",
            )


def _vnet(subnet: str) -> str:
    return subnet.lower().partition("/subnets/")[0]


@cluster_rule("no overlapping ranges", _CIDR_SOURCE)
def _no_overlap(cluster: Cluster) -> Iterator[Fault]:
    for (left, first), (right, second) in combinations(_parsed_ranges(cluster).items(), 2):
        if first.overlaps(second):
            yield Fault(
                f"{_PATH}.{right}",
                f"The range of {right}, {second}, overlaps that of {left}, {first}.",
                "The cluster could not be created, or addresses of pods and services would be ambiguous.",
                "Write ranges that do not overlap.",
            )


@cluster_rule(
    "existing network complete",
    "pulumi-gcp 10.2.0, container.Cluster ipAllocationPolicy; GKE docs, alias-ips: GKE-managed range of "
    "services (2026)",
    CloudKind.GKE,
)
def _existing_vpc_is_whole(cluster: Cluster) -> Iterator[Fault]:
    network = cluster.cloud.network
    if not isinstance(network, GkeNetwork):
        return
    parts = {"vpc": network.vpc, "subnet": network.subnet, "podsRange": network.pods_range}
    missing = [name for name, value in parts.items() if value is None]
    written = [name for name in parts if name not in missing]
    written += [] if network.services_range is None else ["servicesRange"]
    if missing and written:
        yield Fault(
            f"{_PATH}.{missing[0]}",
            f"The existing network is incomplete: {', '.join(written)} without {', '.join(missing)}.",
            "The addresses of nodes, pods and services would be undefined.",
            f"Write {', '.join(missing)} too, or omit all of them for a network of the cluster's own.",
        )


@cluster_rule("own secondary range for services", _ALIAS_IPS, CloudKind.GKE)
def _two_ranges(cluster: Cluster) -> Iterator[Fault]:
    network = cluster.cloud.network
    own = network.services_range if isinstance(network, GkeNetwork) else None
    if isinstance(network, GkeNetwork) and own and own == network.pods_range:
        yield Fault(
            f"{_PATH}.servicesRange",
            f"Pods and services have the same secondary range, {own}.",
            NO_CLUSTER,
            "Write another range of the subnet, or omit servicesRange for one that GKE manages.",
        )


@cluster_rule(
    "existing subnet in network and region",
    f"{_ALIAS_IPS}; VPC docs, subnets, shared-vpc (2026)",
    CloudKind.GKE,
)
def _subnet_of_network(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if not isinstance(cloud, Gke) or not cloud.network.vpc or not cloud.network.subnet:
        return
    links = (cloud.network.vpc, cloud.network.subnet)
    network, subnet = (
        match[1] if (match := _PROJECT_OF_LINK.search(link)) else cloud.project for link in links
    )
    if network != subnet and not network.isdigit() and not subnet.isdigit():
        yield Fault(
            f"{_PATH}.subnet",
            f"The subnet is of the project {subnet}, and its network of {network}.",
            NO_CLUSTER,
            f"Write links of one project: projects/{network}/regions/{cluster.site.region}/subnetworks/NAME.",
        )
    region = _REGION_OF_LINK.search(cloud.network.subnet)
    if region and region[1] != cluster.site.region:
        yield Fault(
            f"{_PATH}.subnet",
            f"The subnet is in {region[1]}, and the cluster in {cluster.site.region}.",
            NO_CLUSTER,
            f"Write a subnet in {cluster.site.region}.",
        )


@cluster_rule("supported range size", f"{_ALIAS_IPS}; {_AKS_PLANNING}; {_AKS_OVERLAY}; {_VIRTUAL_NETWORK}")
def _sizes(cluster: Cluster) -> Iterator[Fault]:
    for field, parsed in _parsed_ranges(cluster).items():
        largest, smallest = _PREFIXES[cluster.site.cloud][field]
        if not largest <= parsed.prefixlen <= smallest:
            too_large = parsed.prefixlen < largest
            size, limit, other = ("large", largest, "smaller") if too_large else ("small", smallest, "larger")
            yield Fault(
                f"{_PATH}.{field}",
                f"The range of {field}, {parsed}, is too {size} for {service_name(cluster.site.cloud)}.",
                NO_CLUSTER,
                f"Write a /{limit} or a {other} range, such as "
                f"{type(cluster.cloud.network).model_fields[field].default}.",
            )


@cluster_rule(
    "no reserved range",
    f"{_VPC}; azure-aks-docs concepts-network-cni-overview.md (2026-07-10); Azure/AKS#2234; "
    f"{_VIRTUAL_NETWORK}",
)
def _reserved(cluster: Cluster) -> Iterator[Fault]:
    texts = _ranges(cluster)
    reserved = {IPv4Network(it): owner for owner, own in _RESERVED[cluster.site.cloud].items() for it in own}
    for field, parsed in _parsed_ranges(cluster).items():
        taken = next(filter(parsed.overlaps, reserved), None)
        if taken is not None:
            yield Fault(
                f"{_PATH}.{field}",
                f"The range of {field}, {texts[field]}, overlaps {taken}, which {reserved[taken]} reserves.",
                NO_CLUSTER,
                f"Write another private range, such as "
                f"{type(cluster.cloud.network).model_fields[field].default}, that does not overlap "
                f"{', '.join(map(str, reserved))}.",
            )


@cluster_rule(
    "range within one RFC",
    f"{_VPC}: no range spans several RFCs, or an RFC and public addresses",
    CloudKind.GKE,
)
def _spans(cluster: Cluster) -> Iterator[Fault]:
    texts = _ranges(cluster)
    for field, parsed in _parsed_ranges(cluster).items():
        part = next(filter(parsed.supernet_of, _PRIVATE), None)
        if part is not None and parsed != part:
            yield Fault(
                f"{_PATH}.{field}",
                f"The range of {field}, {texts[field]}, contains {part} and other addresses.",
                "The cluster could not be created: VPC supports no range that is private in part.",
                f"Write {part}, a range within it, or one that does not overlap it.",
            )


def _nodes_for_pods(cluster: Cluster, pods: IPv4Network) -> int:
    """Return the number of nodes that fit in the range of pods: on AKS a node takes a /24, on GKE twice its
    maximum number of pods, rounded up to a power of two."""
    match cluster.cloud:
        case Gke():
            most = max(_addresses_of_node(pool.max_pods_per_node) for pool in cluster.pools)
            return pods.num_addresses // most
        case Aks():
            return pods.num_addresses // _AKS_NODE_ADDRESSES


def _addresses_of_node(pods: int | None) -> int:
    return 1 << (2 * (pods or _GKE_PODS_PER_NODE) - 1).bit_length()


@cluster_rule(
    "sufficient pod addresses",
    "GKE docs, flexible-pod-cidr (2026); azure-aks-docs concepts-network-azure-cni-overlay.md (2026-07-31)",
    severity=Severity.WARNED,
)
def _room_for_all_nodes(cluster: Cluster) -> Iterator[Fault]:
    parsed, kept = _parsed_ranges(cluster), _RESERVED_ADDRESSES[cluster.site.cloud]
    room: dict[str, int] = {}
    if "nodes" in parsed:
        room["nodes"] = max(0, parsed["nodes"].num_addresses - kept)
    if "gpus" in parsed:
        room["gpus"] = (parsed["gpus"].num_addresses >> SUBNET_BITS) - kept
    if "pods" in parsed:
        room["pods"] = _nodes_for_pods(cluster, parsed["pods"])
    for field, nodes in room.items():
        if cluster.cloud.existing is not None and field != "gpus":
            continue
        pools = (pool for pool in cluster.resolved_pools if field != "gpus" or pool.gpu_direct is not None)
        most = sum(pool.max_nodes for pool in pools)
        if nodes < most:
            yield Fault(
                f"{_PATH}.{field}",
                f"The range of {field}, {parsed[field]}, has addresses for {nodes} nodes, and the pools may "
                f"have {most}.",
                "Pools could not scale beyond that number, without an error.",
                "Write a larger range, or smaller pools.",
            )


@cluster_rule(
    "pod addresses of one node",
    "GKE docs, flexible-pod-cidr: a /23 for 129 to 256 pods of a node (2026)",
    CloudKind.GKE,
)
def _room_for_one_node(cluster: Cluster) -> Iterator[Fault]:
    pods = parsed_range(_ranges(cluster).get("pods", ""))
    smallest = _PREFIXES[CloudKind.GKE]["pods"][1]
    if pods is None or cluster.cloud.existing is not None or pods.prefixlen > smallest:
        return
    for number, pool in enumerate(cluster.pools):
        block = _addresses_of_node(pool.max_pods_per_node)
        if block > pods.num_addresses:
            yield Fault(
                f"pools[{number}].maxPodsPerNode",
                f"A node with {pool.max_pods_per_node} pods takes {block} addresses, and the range of pods, "
                f"{pods}, has {pods.num_addresses}.",
                NO_POOL,
                "Write a smaller number, or a larger range under cloud.network.pods.",
            )


@cluster_rule("outbound type of own network", _OUTBOUND_DOCS, CloudKind.AKS)
def _outbound(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    profile = cloud.overrides.get("networkProfile")
    if not isinstance(cloud, Aks) or cloud.existing is not None or not isinstance(profile, Mapping):
        return
    outbound = cast("Mapping[str, object]", profile).get("outboundType")
    if outbound == _MANAGED_NETWORK and not cloud.network.managed:
        needs, fix = (
            "a network that AKS manages",
            "Write network.managed, or userAssignedNATGateway and network.subnet, or omit it.",
        )
    elif outbound in _OWN_EGRESS and cloud.network.subnet is None:
        needs, fix = f"a subnet with {_OWN_EGRESS[str(outbound)]}", "Write network.subnet, or omit it."
    else:
        return
    yield Fault(
        "cloud.overrides.networkProfile.outboundType",
        f"The outbound type {outbound} needs {needs}.",
        NO_CLUSTER,
        fix,
    )
