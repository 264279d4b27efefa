"""AKS rules for capacity and upgrades of node pools."""

from decimal import Decimal
from typing import Any, Final

from ebbtide.declaration.catalog import can_be_spot
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest, PoolRule
from ebbtide_rehearsal.cloud.azure.errors import invalid, refused
from ebbtide_rehearsal.cloud.azure.values import inner

_SPOT: Final = "azure-aks-docs, spot-node-pool (2025-04)"
_UPGRADE: Final = "azure-aks-docs, upgrade-aks-node-pools-rolling (2026-05)"
_API: Final = "Microsoft.ContainerService 2025-09-01, agentPools"
_DECIMALS: Final = 5


def _spot_is_no_system_pool(pool: PoolRequest) -> str | None:
    if not (pool.is_spot and pool.is_system):
        return None
    return invalid("agentPoolProfile.scaleSetPriority", "System node pools can't be spot")


def _spot_is_a_scale_set(pool: PoolRequest) -> str | None:
    if not pool.is_spot or pool.properties["type"] == "VirtualMachineScaleSets":
        return None
    return invalid("agentPoolProfile.type", "Spot pools must use Virtual Machine Scale Sets")


def _spot_of_a_series_that_has_it(pool: PoolRequest) -> str | None:
    if not pool.is_spot or can_be_spot(pool.machine.family):
        return None
    return refused(
        "BadRequest",
        f"The requested VM size '{pool.machine.name}' is not supported for Azure Spot Virtual Machines.",
    )


def _standard_load_balancer(pool: PoolRequest) -> str | None:
    sku = str(inner(pool.cluster_state, "networkProfile").get("loadBalancerSku", "standard"))
    if sku.lower() == "standard" or not (pool.is_spot or pool.properties.get("availabilityZones")):
        return None
    feature = "spot pools" if pool.is_spot else "availability zone"
    return refused("BadRequest", f"Standard Load Balancer is required for {feature}.")


def _only_spot_is_evicted(pool: PoolRequest) -> str | None:
    if pool.is_spot or pool.given.get("scaleSetEvictionPolicy") is None:
        return None
    return invalid("agentPoolProfile.scaleSetEvictionPolicy", "it can only be set for Spot pools")


def _only_spot_has_a_price(pool: PoolRequest) -> str | None:
    if pool.is_spot or pool.given.get("spotMaxPrice") in (None, -1):
        return None
    return invalid("agentPoolProfile.spotMaxPrice", "it can only be set for Spot pools")


def _price(pool: PoolRequest) -> str | None:
    price = pool.given.get("spotMaxPrice")
    if price is None or price == -1:
        return None
    exponent = Decimal(repr(price)).normalize().as_tuple().exponent
    if price > 0 and isinstance(exponent, int) and exponent >= -_DECIMALS:
        return None
    details = f"it must be -1 or a positive value with up to {_DECIMALS} decimal places"
    return invalid("agentPoolProfile.spotMaxPrice", details)


def _reservation(pool: PoolRequest) -> str | None:
    group = pool.given.get("capacityReservationGroupID")
    if group is None:
        return None
    if pool.is_spot:
        return invalid(
            "agentPoolProfile.capacityReservationGroupID", "Spot pools can't use reserved capacity"
        )
    if "/providers/microsoft.compute/capacityreservationgroups/" not in str(group).lower():
        details = "it is not the resource id of a capacity reservation group"
        return invalid("agentPoolProfile.capacityReservationGroupID", details)
    return None


def _number(value: Any) -> float:
    """Parse a number of nodes, or a percentage."""
    return float(str(value or 0).removesuffix("%"))


def _spot_has_no_surge(pool: PoolRequest) -> str | None:
    settings = inner(pool.given, "upgradeSettings")
    for name, words in (("maxSurge", "max surge"), ("maxUnavailable", "max unavailable")):
        if pool.is_spot and settings.get(name) is not None:
            return invalid(f"agentPoolProfile.upgrade.{name}", f"Spot pools can't set {words}")
    return None


def _upgrades_take_a_node(pool: PoolRequest) -> str | None:
    settings = inner(pool.given, "upgradeSettings")
    surge = settings.get("maxSurge")
    if surge is None or _number(surge) or _number(settings.get("maxUnavailable")):
        return None
    return invalid("agentPoolProfile.upgrade.maxSurge", "max surge and max unavailable can't both be 0")


def _system_nodes_stay(pool: PoolRequest) -> str | None:
    settings = inner(pool.given, "upgradeSettings")
    if not pool.is_system or not _number(settings.get("maxUnavailable")):
        return None
    return invalid("agentPoolProfile.upgrade.maxUnavailable", "System pools can't set max unavailable")


RULES: Final = (
    PoolRule("spot is no system pool", _SPOT, _spot_is_no_system_pool),
    PoolRule("spot is a scale set", _SPOT, _spot_is_a_scale_set),
    PoolRule(
        "spot of a series that has it", "catalog/data/machine_series.csv", _spot_of_a_series_that_has_it
    ),
    PoolRule("a standard load balancer", f"{_SPOT}; Azure/AKS#1133", _standard_load_balancer),
    PoolRule("only spot is evicted", _API, _only_spot_is_evicted),
    PoolRule("only spot has a price", _API, _only_spot_has_a_price),
    PoolRule("a price, or -1", _SPOT, _price),
    PoolRule(
        "a reservation of machines", "azure-aks-docs, use-capacity-reservation-groups (2026-05)", _reservation
    ),
    PoolRule(
        "spot has no surge",
        "XenitAB/terraform-modules#755; Azure/bicep#14517",
        _spot_has_no_surge,
    ),
    PoolRule("an upgrade has a node to take", _UPGRADE, _upgrades_take_a_node),
    PoolRule("no system node missing in an upgrade", f"{_UPGRADE}; Azure/ARO-HCP#6038", _system_nodes_stay),
)
