"""Virtual networks and subnets."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, TypeAlias

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import Arm, Request, ResourceKind, Rule, refused
from ebbtide_rehearsal.cloud.store import Resource

NETWORK: Final = "azure-native:network:VirtualNetwork"
SUBNET: Final = "azure-native:network:Subnet"
AGENT_POOL: Final = "azure-native:containerservice:AgentPool"

Range: TypeAlias = IPv4Network | IPv6Network

_DOCS: Final = "learn.microsoft.com, azure/virtual-network/manage-virtual-network (2026)"


def network_of(subnet: str) -> str:
    """Return the id of a subnet's virtual network."""
    return subnet.rpartition("/subnets/")[0]


def ranges(state: Mapping[str, Any]) -> list[Range]:
    """Return the address ranges of a subnet or a virtual network."""
    space: Mapping[str, Any] = state.get("addressSpace") or state
    listed = space.get("addressPrefixes") or [space.get("addressPrefix")]
    return [ip_network(text) for text in listed if text]


def overlapping(range_: Range, others: list[Range]) -> Iterator[Range]:
    """Yield the other ranges that share an address with a range."""
    return (other for other in others if other.version == range_.version and range_.overlaps(other))


def users(arm: Arm, subnet: str) -> list[Resource]:
    """Return the node pools whose nodes are in a subnet."""
    return [
        pool
        for pool in arm.store.resources("azure-native", AGENT_POOL)
        if ids.same(str(pool.state.get("vnetSubnetID") or ""), subnet)
    ]


def _inside_network(request: Request) -> str | None:
    network = request.cloud.find(network_of(request.id))
    address_space = ranges(network.state) if network else []
    name = ids.last(request.id)
    for range_ in ranges(request.inputs):
        if not any(range_.version == other.version and range_.subnet_of(other) for other in address_space):  # pyright: ignore[reportArgumentType] # of one version
            return refused(
                "NetcfgSubnetRangeOutsideVnet",
                f"Subnet '{name}' is not valid because its IP address range is outside the IP address "
                "range of "
                f"virtual network '{ids.last(network_of(request.id))}'.",
            )
    return None


def _no_overlap(request: Request) -> str | None:
    network = network_of(request.id)
    others = [other for other in request.cloud.below(network, SUBNET) if not ids.same(other.id, request.id)]
    taken = [range_ for other in others for range_ in ranges(other.state)]
    if any(next(overlapping(range_, taken), None) for range_ in ranges(request.inputs)):
        return refused(
            "NetcfgSubnetRangesOverlap",
            f"Subnet '{ids.last(request.id)}' is not valid because its IP address range overlaps with that "
            "of an "
            f"existing subnet in virtual network '{ids.last(network)}'.",
        )
    return None


def _range_stays(request: Request) -> str | None:
    if request.old is None or ranges(request.old.state) == ranges(request.inputs):
        return None
    used = users(request.cloud, request.id)
    if not used:
        return None
    return refused(
        "InUseSubnetCannotBeUpdated",
        f"Subnet {ids.last(request.id)} is in use by {used[0].id} and its address prefix cannot be updated.",
    )


def _still_holds_subnets(request: Request) -> str | None:
    for subnet in request.cloud.below(request.id, SUBNET):
        refusal = _inside(request, subnet)
        if refusal is not None:
            return refusal
    return None


def _inside(request: Request, subnet: Resource) -> str | None:
    address_space = ranges(request.inputs)
    if all(any(range_.subnet_of(other) for other in address_space) for range_ in ranges(subnet.state)):  # pyright: ignore[reportArgumentType] # of one version
        return None
    return refused(
        "InUsePrefixCannotBeDeleted",
        f"IpPrefix of subnet {subnet.id} on virtual network {ids.last(request.id)} is in use and cannot be "
        "deleted.",
    )


def _subnet_in_use(arm: Arm, subnet: Resource) -> str | None:
    """Source: kubernetes-sigs/cluster-api-provider-azure#172, sassoftware/viya4-iac-azure#108."""
    for user in users(arm, subnet.id):
        return refused(
            "InUseSubnetCannotBeDeleted",
            f"Subnet {ids.last(subnet.id)} is in use by {user.id} and cannot be deleted. In order to delete "
            "the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.",
        )
    return None


def _network_in_use(arm: Arm, network: Resource) -> str | None:
    reasons = (_subnet_in_use(arm, subnet) for subnet in arm.below(network.id, SUBNET))
    return next(filter(None, reasons), None)


def _subnets(arm: Arm, network: Resource) -> Mapping[str, Any]:
    return {"subnets": [{"id": subnet.id, **subnet.state} for subnet in arm.below(network.id, SUBNET)]}


KINDS: Final = (
    ResourceKind(
        type=NETWORK,
        api_version="2024-05-01",
        inside=("subnets", "virtualNetworkPeerings"),
        rules=(Rule("ranges of its subnets", _DOCS, _still_holds_subnets),),
        outputs=lambda _request: {"provisioningState": "Succeeded"},
        before_delete=_network_in_use,
        current=_subnets,
    ),
    ResourceKind(
        type=SUBNET,
        api_version="2024-05-01",
        parent=NETWORK,
        rules=(
            Rule(
                "range inside the network",
                "MicrosoftDocs/azure-docs#123869; Azure/azure-service-operator#4927",
                _inside_network,
            ),
            Rule("no overlapping subnets", "MicrosoftDocs/azure-docs#123869", _no_overlap),
            Rule("fixed range while in use", "hashicorp/terraform-provider-azurerm#7687", _range_stays),
        ),
        outputs=lambda _request: {"provisioningState": "Succeeded"},
        before_delete=_subnet_in_use,
    ),
)
