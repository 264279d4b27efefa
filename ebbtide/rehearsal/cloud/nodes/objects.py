"""Kubernetes objects as JSON: parts that may be missing or null, and quantities."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from kubernetes import utils  # pyright: ignore[reportMissingTypeStubs]

Object = Mapping[str, Any]
Amounts = Mapping[str, Decimal]

_parse = cast("Any", utils).parse_quantity


def part(raw: Object, *path: str) -> Object:
    """An object within another; empty where it is missing or null."""
    for key in path:
        raw = cast("Object", raw.get(key) or {})
    return raw


def parts(raw: Object, *path: str) -> Sequence[Object]:
    """A list within an object; empty where it is missing or null."""
    return cast("Sequence[Object]", part(raw, *path[:-1]).get(path[-1]) or ())


def text(raw: Object, *path: str) -> str:
    """A string within an object; empty where it is missing or null."""
    return str(part(raw, *path[:-1]).get(path[-1]) or "")


def words(raw: Object, *path: str) -> Sequence[str]:
    """A list of strings within an object; empty where it is missing or null."""
    return [str(word) for word in parts(raw, *path)]


def amounts(resources: Object) -> dict[str, Decimal]:
    """Kubernetes quantities as numbers."""
    return {name: _parse(quantity) for name, quantity in resources.items()}


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
