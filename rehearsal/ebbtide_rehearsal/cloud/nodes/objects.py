"""Read-only Kubernetes objects, and quantities in them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ebbtide import quantities

Object = Mapping[str, Any]
Amounts = Mapping[str, Decimal]


def amounts(resources: Object) -> dict[str, Decimal]:
    """Parse Kubernetes quantities."""
    return {name: quantities.parse(amount) for name, amount in resources.items()}


def total(*many: Amounts) -> dict[str, Decimal]:
    """Add up amounts."""
    summed: dict[str, Decimal] = {}
    for addend in many:
        for name, amount in addend.items():
            summed[name] = summed.get(name, Decimal(0)) + amount
    return summed


def most(*many: Amounts) -> dict[str, Decimal]:
    """Return the maximum of each amount."""
    largest: dict[str, Decimal] = {}
    for candidate in many:
        for name, amount in candidate.items():
            largest[name] = max(amount, largest.get(name, Decimal(0)))
    return largest
