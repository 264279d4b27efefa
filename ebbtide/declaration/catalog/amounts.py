"""Amounts of money, USD per hour, and the amount for a node."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.disks import premium_disk
from ebbtide.declaration.catalog.machines import find_machine
from ebbtide.declaration.catalog.prices import Price, find_price, node_items
from ebbtide.declaration.cloud_kind import CloudKind

HOURS_PER_MONTH: Final = 730
"""Hours of a month in which a cloud bills by the hour."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount, USD per hour.

    Attributes:
        known: sum of the known prices.
        unknown: items without a known price; the sum is then a lower bound.
        estimated: items whose price is an estimate; the sum is then one, too.
        prices: prices of the items.
    """

    known: float = 0.0
    unknown: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()
    prices: frozenset[Price] = frozenset()

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            self.known + other.known,
            tuple(dict.fromkeys((*self.unknown, *other.unknown))),
            tuple(dict.fromkeys((*self.estimated, *other.estimated))),
            self.prices | other.prices,
        )

    def __mul__(self, count: float) -> "Amount":
        return replace(self, known=self.known * count) if count else Amount()


def total(amounts: Iterable[Amount]) -> Amount:
    """Add amounts."""
    return reduce(Amount.__add__, amounts, Amount())


def item_amount(
    cloud: CloudKind, region: str, name: str, count: int = 1, capacity: str = "on-demand"
) -> Amount:
    """Return the amount for an item of the price table."""
    return _amount(name, find_price(cloud, region, name), count, capacity)


def _amount(name: str, price: Price | None, count: int, capacity: str) -> Amount:
    rate = price.of(capacity) if price else None
    if price is None or rate is None:
        return Amount(unknown=(name,))
    estimated = (name,) if price.is_estimated(capacity) else ()
    return Amount(rate * count, estimated=estimated, prices=frozenset({price}))


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedNode:
    """Properties of a node that determine its price.

    Attributes:
        cloud: its cloud.
        location: its region or zone.
        machine: machine type.
        accelerator: type of its accelerators; empty for none.
        accelerators: count of them.
        disk_type: type of its boot disk, as the cloud names it; None for the cloud's default.
        disk_gib: size of its boot disk; None for the cloud's default.
    """

    cloud: CloudKind
    location: str
    machine: str
    accelerator: str = ""
    accelerators: int = 0
    disk_type: str | None = None
    disk_gib: int | None = None

    def amount(self, capacity: str) -> Amount:
        """Return the amount for the node with its accelerators and its boot disk, at a capacity type."""
        return self.machine_amount(capacity) + self._disk()

    def machine_amount(self, capacity: str) -> Amount:
        """Return the amount for the machine and its accelerators."""
        machine = find_machine(self.cloud, self.machine)
        attached = (self.accelerator, self.accelerators) if machine and machine.attachable else ("", 0)
        items = node_items(self.cloud, region_of(self.location), self.machine, *attached)
        return total(_amount(f"{name} ({capacity})", price, count, capacity) for name, price, count in items)

    def _disk(self) -> Amount:
        """Return the amount for the boot disk; an ephemeral disk on AKS is part of the machine."""
        if self.disk_type == "ephemeral":
            return Amount()
        region = region_of(self.location)
        if self.cloud is CloudKind.GKE:
            return item_amount(self.cloud, region, f"{self.disk_type}-gib", self.disk_gib or 0)
        item = premium_disk(self.disk_gib) if self.disk_gib else None
        return item_amount(self.cloud, region, item) if item else Amount(unknown=("boot disk",))
