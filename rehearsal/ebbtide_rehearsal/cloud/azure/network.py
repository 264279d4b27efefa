"""Virtual networks and their subnets."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, TypeAlias

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.errors import refused
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource

NETWORK: Final = "azure-native:network:VirtualNetwork"
SUBNET: Final = "azure-native:network:Subnet"
AGENT_POOL: Final = "azure-native:containerservice:AgentPool"

Range: TypeAlias = IPv4Network | IPv6Network

_PATH: Final = f"{ids.GROUP}/providers/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"
_DOCS: Final = "learn.microsoft.com, azure/virtual-network/manage-virtual-network (2026)"
_NETWORK_NAME: Final = Limit(shortest=2, longest=64)
_SUBNET_NAME: Final = Limit(shortest=1, longest=80)


def network_of(subnet: str) -> str:
    """Id of the virtual network that a subnet is in."""
    return subnet.rpartition("/subnets/")[0]


def ranges(state: Mapping[str, Any]) -> list[Range]:
    """Address ranges of a subnet or a virtual network."""
    space: Mapping[str, Any] = state.get("addressSpace") or state
    listed = space.get("addressPrefixes") or [space.get("addressPrefix")]
    return [ip_network(text) for text in listed if text]


def overlapping(range_: Range, others: list[Range]) -> Iterator[Range]:
    """Those of other ranges that have an address in common with one."""
    return (other for other in others if other.version == range_.version and range_.overlaps(other))


def users(arm: Arm, subnet: str) -> list[Resource]:
    """Node pools whose nodes stand in a subnet."""
    return [
        pool
        for pool in arm.store.resources("azure-native", AGENT_POOL)
        if ids.same(str(pool.state.get("vnetSubnetID") or ""), subnet)
    ]


def _well_formed(_arm: Arm, wish: Wish) -> RefusedError | None:
    try:
        ranges(wish.inputs)
    except ValueError as error:
        return refused("InvalidCIDRNotation", f"The address prefix has an invalid CIDR notation: {error}.")
    return None


def _inside_network(arm: Arm, wish: Wish) -> RefusedError | None:
    network = arm.find(network_of(wish.id))
    around = ranges(network.state) if network else []
    name = ids.last(wish.id)
    for range_ in ranges(wish.inputs):
        if not any(range_.version == one.version and range_.subnet_of(one) for one in around):  # pyright: ignore[reportArgumentType] # of one version
            return refused(
                "NetcfgSubnetRangeOutsideVnet",
                f"Subnet '{name}' is not valid because its IP address range is outside the IP address "
                "range of "
                f"virtual network '{ids.last(network_of(wish.id))}'.",
            )
    return None


def _no_overlap(arm: Arm, wish: Wish) -> RefusedError | None:
    network = network_of(wish.id)
    others = [one for one in arm.below(network, SUBNET) if not ids.same(one.id, wish.id)]
    taken = [range_ for one in others for range_ in ranges(one.state)]
    if any(next(overlapping(range_, taken), None) for range_ in ranges(wish.inputs)):
        return refused(
            "NetcfgSubnetRangesOverlap",
            f"Subnet '{ids.last(wish.id)}' is not valid because its IP address range overlaps with that "
            "of an "
            f"existing subnet in virtual network '{ids.last(network)}'.",
        )
    return None


def _range_stays(arm: Arm, wish: Wish) -> RefusedError | None:
    if wish.was is None or ranges(wish.was.state) == ranges(wish.inputs):
        return None
    used = users(arm, wish.id)
    if not used:
        return None
    return refused(
        "InUseSubnetCannotBeUpdated",
        f"Subnet {ids.last(wish.id)} is in use by {used[0].id} and its address prefix cannot be updated.",
    )


def _still_holds_subnets(arm: Arm, wish: Wish) -> RefusedError | None:
    for subnet in arm.below(wish.id, SUBNET):
        refusal = _inside(wish, subnet)
        if refusal is not None:
            return refusal
    return None


def _inside(wish: Wish, subnet: Resource) -> RefusedError | None:
    around = ranges(wish.inputs)
    if all(any(range_.subnet_of(one) for one in around) for range_ in ranges(subnet.state)):  # pyright: ignore[reportArgumentType] # of one version
        return None
    return refused(
        "InUsePrefixCannotBeDeleted",
        f"IpPrefix of subnet {subnet.id} on virtual network {ids.last(wish.id)} is in use and cannot be "
        "deleted.",
    )


def _subnet_leaves(arm: Arm, subnet: Resource) -> None:
    """Source: kubernetes-sigs/cluster-api-provider-azure#172, sassoftware/viya4-iac-azure#108."""
    for user in users(arm, subnet.id):
        raise refused(
            "InUseSubnetCannotBeDeleted",
            f"Subnet {ids.last(subnet.id)} is in use by {user.id} and cannot be deleted. In order to "
            "delete the "
            "subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.",
        )


def _network_leaves(arm: Arm, network: Resource) -> None:
    for subnet in arm.below(network.id, SUBNET):
        _subnet_leaves(arm, subnet)


def _network_seen(arm: Arm, network: Resource) -> Mapping[str, Any]:
    subnets = [{"id": one.id, **one.state} for one in arm.below(network.id, SUBNET)]
    return {**network.state, "subnets": subnets}


KINDS: Final = (
    Kind(
        token=NETWORK,
        api_version="2024-05-01",
        path=_PATH,
        replaces=frozenset({"location"}),
        limits={"virtualNetworkName": _NETWORK_NAME},
        inside=("subnets", "virtualNetworkPeerings"),
        refusals=(
            Refusal("ranges that parse", _DOCS, _well_formed),
            Refusal("room for its subnets", _DOCS, _still_holds_subnets),
        ),
        outputs=lambda _arm, _wish: {"provisioningState": "Succeeded"},
        leaving=_network_leaves,
        seen=_network_seen,
    ),
    Kind(
        token=SUBNET,
        api_version="2024-05-01",
        path=f"{_PATH}/subnets/{{subnetName}}",
        parent=NETWORK,
        limits={"subnetName": _SUBNET_NAME},
        refusals=(
            Refusal("ranges that parse", _DOCS, _well_formed),
            Refusal(
                "inside the network",
                "MicrosoftDocs/azure-docs#123869; Azure/azure-service-operator#4927",
                _inside_network,
            ),
            Refusal("beside other subnets", "MicrosoftDocs/azure-docs#123869", _no_overlap),
            Refusal("no other range while in use", "hashicorp/terraform-provider-azurerm#7687", _range_stays),
        ),
        outputs=lambda _arm, _wish: {"provisioningState": "Succeeded"},
        leaving=_subnet_leaves,
    ),
)
