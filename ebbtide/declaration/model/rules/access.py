"""Access to the control plane: authorized ranges, and a private control plane."""

import re
from collections.abc import Iterator

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.network import parsed_range
from ebbtide.declaration.model.rules.rule import NO_CLUSTER, Severity, cluster_rule, pools_of
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at

_PRIVATE_AKS = "azure-aks-docs private-clusters.md (2026-08-05)"
_AKS_RANGES = "azure-aks-docs api-server-authorized-ip-ranges.md (2026-08-03)"
_GKE_RANGES = (
    "gcloud CLI 556.0.0, api_lib/container/api_adapter.py (2026-02-10): up to 100 with private nodes"
)
_ZONE = re.compile(
    r"/subscriptions/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/resourceGroups/[^/]+/providers/Microsoft\.Network/privateDnsZones/"
    r"(?P<name>[^/]+)",
    re.IGNORECASE,
)
_WITH_ADDRESS = {"loadBalancer": "AKS's load balancer", "managedNATGateway": "AKS's NAT gateway"}
_ZONE_WORDS = ("system", "none")
_DOMAIN, _GOVERNMENT_DOMAIN = "azmk8s.io", "cx.aks.containerservice.azure.us"
_RANGES_OF_INTEGRATION = 2000
_LONGEST_SUBZONE = 32
_NETWORKS = "cloud.access.networks"


@cluster_rule(
    "no authorized range of the whole internet",
    "GKE docs, authorized-networks (2026); azure-aks-docs api-server-authorized-ip-ranges.md (2026-08-03)",
    severity=Severity.WARNED,
)
def _open_to_all(cluster: Cluster) -> Iterator[Fault]:
    for index, text in enumerate(cluster.cloud.access.networks):
        network = parsed_range(text)
        if network is not None and network.prefixlen == 0:
            yield Fault(
                f"{_NETWORKS}[{index}]",
                f"{text} allows the whole internet.",
                "Anyone could reach the control plane.",
                "Write the ranges of your offices and CI runners.",
            )


@cluster_rule(
    "API server has authorized ranges",
    "azure-aks-docs api-server-authorized-ip-ranges.md (2026-08-03)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _aks_open_server(cluster: Cluster) -> Iterator[Fault]:
    access = cluster.cloud.access
    if not access.networks and not access.private and cluster.cloud.existing is None:
        yield Fault(
            _NETWORKS,
            "The API server is open to the internet.",
            "Anyone can reach it, and only Entra ID protects it.",
            "Write the ranges of your offices and CI runners under networks.",
        )


def _is_integrated(cluster: Cluster) -> bool:
    """Return whether overrides put the API server of AKS into a subnet (API Server VNet Integration)."""
    return value_at(cluster.cloud.overrides, "apiServerAccessProfile.enableVnetIntegration") is True


@cluster_rule("authorized ranges need a public API server", _PRIVATE_AKS, CloudKind.AKS)
def _no_ranges_on_aks(cluster: Cluster) -> Iterator[Fault]:
    if cluster.cloud.access.private and cluster.cloud.access.networks:
        yield Fault(
            _NETWORKS,
            "Authorized ranges apply only to a public API server on AKS, and this one is private.",
            "AKS refuses the cluster.",
            "Remove networks, and restrict access to the cluster's network, or omit private.",
        )


@cluster_rule("authorized ranges and public nodes", _AKS_RANGES, CloudKind.AKS)
def _public_nodes(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster) if cluster.cloud.access.networks else ():
        overrides = pool.pool.overrides
        if overrides.get("enableNodePublicIP") is True and not overrides.get("nodePublicIPPrefixID"):
            yield Fault(
                pool.at("overrides.enableNodePublicIP"),
                "The API server has authorized ranges, and the nodes have public addresses without a prefix.",
                "The nodes could not reach the API server, and would never be ready.",
                "Write nodePublicIPPrefixID too, and the prefix's range under cloud.access.networks, or "
                "remove enableNodePublicIP.",
            )


@cluster_rule(
    "private DNS zone",
    f"{_PRIVATE_AKS}; MicrosoftDocs/azure-docs#119624 (2024-02-07): zones in Azure Government",
    CloudKind.AKS,
)
def _zone(cluster: Cluster) -> Iterator[Fault]:
    if not isinstance(cluster.cloud, Aks):
        return
    zone, path = cluster.cloud.access.private_dns_zone, "cloud.access.privateDnsZone"
    if zone != "system" and not cluster.cloud.access.private:
        yield Fault(
            path,
            "The API server is public, and a private DNS zone is declared.",
            "The zone would have no effect.",
            "Write private: true, or omit privateDnsZone.",
        )
        return
    if zone in _ZONE_WORDS:
        return
    location = cluster.cloud.location
    domain = _GOVERNMENT_DOMAIN if location.startswith("usgov") else _DOMAIN
    names = [f"privatelink.{location}.{domain}"]
    names += [f"private.{location}.{domain}"] if _is_integrated(cluster) else []
    match = _ZONE.fullmatch(zone)
    subzone, _, rest = match["name"].partition(".") if match else ("", "", "")
    own = match is not None and match["name"] in names
    if not own and (rest not in names or len(subzone) > _LONGEST_SUBZONE):
        yield Fault(
            path,
            f"{zone} is not a private DNS zone for an API server in {location}.",
            NO_CLUSTER,
            "Write system, none, or the resource id of a zone "
            f"/subscriptions/…/resourceGroups/…/providers/Microsoft.Network/privateDnsZones/{names[-1]}.",
        )


@cluster_rule(
    "maximum authorized ranges",
    f"{_GKE_RANGES}; {_AKS_RANGES}: up to 200, and 2,000 with API Server VNet Integration",
)
def _number_of_ranges(cluster: Cluster) -> Iterator[Fault]:
    number, spec = len(cluster.cloud.access.networks), CLOUD_SPECS[cluster.site.cloud]
    if number > (most := _RANGES_OF_INTEGRATION if _is_integrated(cluster) else spec.authorized_networks):
        yield Fault(
            _NETWORKS,
            f"{number} ranges are declared, and the cloud supports at most {most}.",
            NO_CLUSTER,
            "Write fewer, larger ranges.",
        )


@cluster_rule(
    "private control plane access",
    f"{_PRIVATE_AKS}; GKE docs, network-isolation (2026)",
    severity=Severity.WARNED,
)
def _outside(cluster: Cluster) -> Iterator[Fault]:
    if not cluster.cloud.access.private or cluster.cloud.existing is not None:
        return
    connected = "or in a connected one"
    if cluster.site.cloud is CloudKind.GKE and cluster.cloud.access.networks:
        connected += " whose range is under access.networks"
    yield Fault(
        "cloud.access.private",
        "The control plane cannot be reached from outside the cluster's network.",
        "From outside, pulumi up creates the cluster and its pools, and fails at add-ons, queues and "
        "teams; ebbtide destroy cannot check for running work; ebbtide job --submit, ebbtide follow and "
        "kubectl fail.",
        f"Run them, and CI, on a machine in that network {connected}, such as a self-hosted runner.",
    )


@cluster_rule(
    "public egress of a private cluster",
    "azure-aks-docs egress-outboundtype.md (2026-08-05)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _public_egress(cluster: Cluster) -> Iterator[Fault]:
    if not cluster.cloud.access.private or cluster.cloud.existing is not None:
        return
    outbound = value_at(cluster.cloud.overrides, "networkProfile.outboundType") or "loadBalancer"
    if outbound in _WITH_ADDRESS:
        yield Fault(
            "cloud.access.private",
            f"The nodes reach the internet through a public address: that of {_WITH_ADDRESS[outbound]}.",
            "A policy that denies public addresses refuses the cluster.",
            "If there is one, write overrides: {networkProfile: {outboundType: userDefinedRouting}}, and "
            "under network.subnet a subnet whose route table leads to a firewall.",
        )


@cluster_rule(
    "private ranges for private control plane",
    "GKE docs, authorized-networks (2026)",
    CloudKind.GKE,
    Severity.WARNED,
)
def _public_ranges(cluster: Cluster) -> Iterator[Fault]:
    for index, text in enumerate(cluster.cloud.access.networks if cluster.cloud.access.private else ()):
        network = parsed_range(text)
        if network is not None and not network.is_private:
            yield Fault(
                f"{_NETWORKS}[{index}]",
                f"{text} is a public range, and the control plane has only a private address.",
                "No host in that range can reach it, unless the range is used privately.",
                "Write the private ranges of connected networks.",
            )
