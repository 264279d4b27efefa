"""What AKS refuses of a cluster's address ranges and network."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.errors import invalid, refused
from ebbtide_rehearsal.cloud.azure.kind import Refusal, Wish
from ebbtide_rehearsal.cloud.azure.network import SUBNET, Range, network_of, overlapping, ranges
from ebbtide_rehearsal.cloud.azure.values import inner, items
from ebbtide_rehearsal.cloud.provider import RefusedError

_PLANNING: Final = "azure-aks-docs, concepts-network-ip-address-planning (2026)"
_CILIUM: Final = "azure-aks-docs, azure-cni-powered-by-cilium (2026)"
_SERVICES: Final = "10.0.0.0/16"
_LARGEST_SERVICES: Final = 12
_RESERVED: Final = tuple(
    ip_network(text) for text in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")
)


def _network(wish: Wish) -> Mapping[str, Any]:
    return inner(wish.inputs, "networkProfile")


def _services(wish: Wish) -> Range:
    return ip_network(str(_network(wish).get("serviceCidr") or _SERVICES))


def _ranges_parse(_arm: Arm, wish: Wish) -> RefusedError | None:
    for name in ("serviceCidr", "podCidr"):
        text = _network(wish).get(name)
        try:
            ip_network(str(text)) if text is not None else None
        except ValueError:
            target = f"networkProfile.{name}"
            return refused("CidrStringParseError", "Cidr is invalid", target=target)
    return None


def _services_are_small(_arm: Arm, wish: Wish) -> RefusedError | None:
    if _services(wish).prefixlen > _LARGEST_SERVICES:
        return None
    return invalid("networkProfile.serviceCidr", f"it must be smaller than /{_LARGEST_SERVICES}")


def _services_are_not_reserved(_arm: Arm, wish: Wish) -> RefusedError | None:
    taken = next(overlapping(_services(wish), list(_RESERVED)), None)
    if taken is None:
        return None
    return invalid("networkProfile.serviceCidr", f"it overlaps the reserved range {taken}")


def _subnet_ranges(arm: Arm, wish: Wish) -> list[Range]:
    """Of all subnets of the networks that the cluster's pools are in, as far as they are known here."""
    found = [str(one.get("vnetSubnetID") or "") for one in items(wish.inputs, "agentPoolProfiles")]
    networks = {network_of(subnet) for subnet in found if subnet}
    return [
        range_
        for network in networks
        for subnet in arm.below(network, SUBNET)
        for range_ in ranges(subnet.state)
    ]


def _services_beside_subnets(arm: Arm, wish: Wish) -> RefusedError | None:
    services = _services(wish)
    taken = next(overlapping(services, _subnet_ranges(arm, wish)), None)
    if taken is None:
        return None
    return refused(
        "ServiceCidrOverlapExistingSubnetsCidr",
        f"The specified service CIDR {services} is conflicted with an existing subnet CIDR {taken}",
        target="networkProfile.serviceCIDR",
    )


def _pods_beside_the_rest(arm: Arm, wish: Wish) -> RefusedError | None:
    text = _network(wish).get("podCidr")
    others = [*_subnet_ranges(arm, wish), _services(wish)]
    taken = next(overlapping(ip_network(str(text)), others), None) if text else None
    if taken is None:
        return None
    return invalid("networkProfile.podCidr", f"the pod CIDR {text} overlaps {taken}")


def _dns_address(_arm: Arm, wish: Wish) -> RefusedError | None:
    text = _network(wish).get("dnsServiceIP")
    if text is None:
        return None
    services = _services(wish)
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


def _cilium(_arm: Arm, wish: Wish) -> RefusedError | None:
    network = _network(wish)
    plugin, plane = network.get("networkPlugin", "azure"), network.get("networkDataplane")
    if plane == "cilium" and plugin != "azure":
        return invalid("networkProfile.networkDataplane", "cilium needs the network plugin azure")
    if network.get("networkPolicy") == "cilium" and plane != "cilium":
        return invalid("networkProfile.networkPolicy", "cilium needs the network dataplane cilium")
    if network.get("networkPluginMode") == "overlay" and plugin != "azure":
        return invalid("networkProfile.networkPluginMode", "overlay needs the network plugin azure")
    return None


RULES: Final = (
    Refusal("ranges that parse", "Azure/AKS#506", _ranges_parse),
    Refusal("services in less than a /12", _PLANNING, _services_are_small),
    Refusal("services in no reserved range", "Azure/AKS#2234", _services_are_not_reserved),
    Refusal("services beside subnets", "Azure/AKS#1117; Azure/AKS#3551", _services_beside_subnets),
    Refusal("pods beside the rest", _PLANNING, _pods_beside_the_rest),
    Refusal(
        "the DNS server among the services",
        f"{_PLANNING}; Azure/bicep-registry-modules#1469; Azure/AKS#2579",
        _dns_address,
    ),
    Refusal("cilium on Azure's own network", _CILIUM, _cilium),
)
