"""AKS rules for address ranges and networks of clusters."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.errors import invalid, refused
from ebbtide_rehearsal.cloud.azure.network import SUBNET, Range, network_of, overlapping, ranges
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, Rule
from ebbtide_rehearsal.cloud.azure.values import inner, items

_PLANNING: Final = "azure-aks-docs, concepts-network-ip-address-planning (2026)"
_CILIUM: Final = "azure-aks-docs, azure-cni-powered-by-cilium (2026)"
_SERVICES: Final = "10.0.0.0/16"
_LARGEST_SERVICES: Final = 12
_RESERVED: Final = tuple(
    ip_network(text) for text in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")
)


def _network(request: Request) -> Mapping[str, Any]:
    return inner(request.inputs, "networkProfile")


def _services(request: Request) -> Range:
    return ip_network(str(_network(request).get("serviceCidr") or _SERVICES))


def _ranges_parse(request: Request) -> str | None:
    for name in ("serviceCidr", "podCidr"):
        text = _network(request).get(name)
        try:
            ip_network(str(text)) if text is not None else None
        except ValueError:
            target = f"networkProfile.{name}"
            return refused("CidrStringParseError", "Cidr is invalid", target=target)
    return None


def _services_are_small(request: Request) -> str | None:
    if _services(request).prefixlen > _LARGEST_SERVICES:
        return None
    return invalid("networkProfile.serviceCidr", f"it must be smaller than /{_LARGEST_SERVICES}")


def _no_range_is_reserved(request: Request) -> str | None:
    pods = _network(request).get("podCidr")
    declared = {"serviceCidr": _services(request)} | ({"podCidr": ip_network(str(pods))} if pods else {})
    for name, declared_range in declared.items():
        taken = next(overlapping(declared_range, list(_RESERVED)), None)
        if taken is not None:
            return invalid(f"networkProfile.{name}", f"it overlaps the reserved range {taken}")
    return None


def _subnet_ranges(request: Request) -> list[Range]:
    """Return the ranges of all known subnets in the networks of the cluster's pools."""
    subnets = [
        str(profile.get("vnetSubnetID") or "") for profile in items(request.inputs, "agentPoolProfiles")
    ]
    networks = {network_of(subnet) for subnet in subnets if subnet}
    return [
        range_
        for network in networks
        for subnet in request.cloud.below(network, SUBNET)
        for range_ in ranges(subnet.state)
    ]


def _services_beside_subnets(request: Request) -> str | None:
    services = _services(request)
    taken = next(overlapping(services, _subnet_ranges(request)), None)
    if taken is None:
        return None
    return refused(
        "ServiceCidrOverlapExistingSubnetsCidr",
        f"The specified service CIDR {services} is conflicted with an existing subnet CIDR {taken}",
        target="networkProfile.serviceCIDR",
    )


def _pods_beside_the_rest(request: Request) -> str | None:
    text = _network(request).get("podCidr")
    others = [*_subnet_ranges(request), _services(request)]
    taken = next(overlapping(ip_network(str(text)), others), None) if text else None
    if taken is None:
        return None
    return invalid("networkProfile.podCidr", f"the pod CIDR {text} overlaps {taken}")


def _dns_address(request: Request) -> str | None:
    text = _network(request).get("dnsServiceIP")
    if text is None:
        return None
    services = _services(request)
    try:
        address = ip_address(str(text))
    except ValueError:
        return invalid("networkProfile.dnsServiceIP", f"{text} is not an IP address")
    if address not in services:
        details = f"the DNS service IP {address} does not belong to the range {services}"
        return invalid("networkProfile.dnsServiceIP", details)
    if address in (services[0], services[1]):
        return invalid("networkProfile.dnsServiceIP", f"{address} is not free: use another of {services}")
    return None


def _cilium(request: Request) -> str | None:
    network = _network(request)
    plugin, plane = network.get("networkPlugin", "azure"), network.get("networkDataplane")
    if plane == "cilium" and plugin != "azure":
        return invalid("networkProfile.networkDataplane", "cilium needs the network plugin azure")
    if network.get("networkPolicy") == "cilium" and plane != "cilium":
        return invalid("networkProfile.networkPolicy", "cilium needs the network dataplane cilium")
    if network.get("networkPluginMode") == "overlay" and plugin != "azure":
        return invalid("networkProfile.networkPluginMode", "overlay needs the network plugin azure")
    return None


RULES: Final = (
    Rule("ranges that parse", "Azure/AKS#506", _ranges_parse),
    Rule("services in less than a /12", _PLANNING, _services_are_small),
    Rule("no reserved range", "Azure/AKS#2234", _no_range_is_reserved),
    Rule("services beside subnets", "Azure/AKS#1117; Azure/AKS#3551", _services_beside_subnets),
    Rule("pods beside the rest", _PLANNING, _pods_beside_the_rest),
    Rule(
        "the DNS server among the services",
        f"{_PLANNING}; Azure/bicep-registry-modules#1469; Azure/AKS#2579",
        _dns_address,
    ),
    Rule("cilium on Azure's own network", _CILIUM, _cilium),
)
