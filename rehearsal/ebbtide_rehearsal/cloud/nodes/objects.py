"""Kubernetes objects as they are only looked at, and the quantities in them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ebbtide.kubernetes_api.quantities import parse_quantity

Object = Mapping[str, Any]
Amounts = Mapping[str, Decimal]


def amounts(resources: Object) -> dict[str, Decimal]:
    """Kubernetes quantities as numbers."""
    return {name: parse_quantity(quantity) for name, quantity in resources.items()}


def total(*many: Amounts) -> dict[str, Decimal]:
    """Amounts added up."""
    summed: dict[str, Decimal] = {}
    for each in many:
        for name, amount in each.items():
            summed[name] = summed.get(name, Decimal(0)) + amount
    return summed


def most(*many: Amounts) -> dict[str, Decimal]:
    """The most of each amount."""
    largest: dict[str, Decimal] = {}
    for each in many:
        for name, amount in each.items():
            largest[name] = max(amount, largest.get(name, Decimal(0)))
    return largest
