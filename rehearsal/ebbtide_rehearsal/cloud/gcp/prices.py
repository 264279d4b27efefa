"""Hourly prices of nodes, from the catalog's list prices."""

from typing import Final

from ebbtide.catalog import CloudKind, Machine, Price, find_price, machine_price
from ebbtide.catalog.clouds import region_of
from ebbtide.catalog.prices import lowest_price
from ebbtide.reading.facts import CapacityKind
from ebbtide.reading.inputs import Inputs

_DISK_GIB: Final = 100  # GKE v1 API, NodeConfig.diskSizeGb
_DISK_TYPE: Final = "pd-balanced"


def hourly(
    fields: Inputs, machine: Machine, accelerator: tuple[str, int] | None, capacity: CapacityKind, zone: str
) -> float:
    """Return the price of a node with its accelerators and boot disk, USD per hour; items without a known
    price are 0."""
    region = region_of(zone)
    host = machine_price(CloudKind.GKE, region, machine.name) or lowest_price(CloudKind.GKE, machine.name)
    total = _rate(host, capacity)
    if accelerator is not None and not machine.accelerator:
        kind, count = accelerator
        total += count * _rate(find_price(CloudKind.GKE, region, f"gpu:{kind}"), capacity)
    kind, size = boot_disk(fields)
    return total + size * _rate(find_price(CloudKind.GKE, region, f"{kind}-gib"), "on-demand")


def boot_disk(fields: Inputs) -> tuple[str, int]:
    """Return the type of a node's boot disk, and its size in GB."""
    return (
        fields.text("nodeConfig.diskType") or _DISK_TYPE,
        fields.number("nodeConfig.diskSizeGb") or _DISK_GIB,
    )


def _rate(price: Price | None, capacity: CapacityKind) -> float:
    """Return the price of a capacity kind, by default the on-demand price."""
    return (price.of(capacity) or price.on_demand or 0.0) if price else 0.0
