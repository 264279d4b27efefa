"""Cost of a stack's resources, from its state."""

from collections.abc import Mapping
from typing import Any

from ebbtide.analysis.costs.rates import rates
from ebbtide.clients.clouds.interfaces import CloudResource
from ebbtide.declaration.catalog import CloudKind, find_price
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.catalog.clouds import region_of


def idle_cost(exported: Mapping[str, Any]) -> Amount | None:
    """Return the cost of a stack without work; None if nothing has a price.

    Args:
        exported: the output of `pulumi stack export`.

    Raises:
        StateError: it is not an exported state.
    """
    amount = rates(exported).idle
    return amount if amount.prices else None


def cost_of(cloud: CloudKind, resource: CloudResource) -> float | None:
    """Return the cost of a resource, USD per hour; None if no price is known."""
    place = "" if resource.location == "global" else region_of(resource.location)
    price = find_price(cloud, place, resource.price_item) if resource.price_item else None
    return None if price is None or price.on_demand is None else price.on_demand * resource.quantity
