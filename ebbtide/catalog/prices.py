"""List prices, USD per hour. See `data/prices.csv` for date and source of each."""

from dataclasses import dataclass
from functools import cache

from ebbtide.catalog.clouds import CloudKind
from ebbtide.catalog.tables import number, rows

GLOBAL = "global"
"""The region of a rate that holds for every region of a cloud."""


@dataclass(frozen=True, slots=True)
class Price:
    """Price of an item, USD per hour (disks and addresses too; `…-gib` items per GiB), before discounts
    and tax.

    Attributes:
        on_demand: the list price; None if unknown.
        spot: spot price, which changes monthly; None if unknown.
        flex: Dynamic Workload Scheduler flex-start price; None if unknown.
        note: scope of the price.
        as_of: year and month, or date, of the source; empty if the source has none.
        source: its source.
    """

    on_demand: float | None
    spot: float | None
    flex: float | None
    note: str
    as_of: str
    source: str

    def of(self, capacity: str) -> float | None:
        """Return the price of a capacity type (`spot`, `flex-start`, …); None if unknown.

        Reserved machines are billed as on-demand ones, used or not.
        """
        match capacity:
            case "spot" | "preemptible":
                return self.spot
            case "flex-start" | "queued":
                return self.flex
            case _:
                return self.on_demand


@cache
def _prices() -> dict[tuple[str, str, str], Price]:
    return {
        (row["cloud"], row["region"], row["item"]): Price(
            on_demand=number(row["usd_per_hour_on_demand"]),
            spot=number(row["usd_per_hour_spot"]),
            flex=number(row["usd_per_hour_flex"]),
            note=row["note"],
            as_of=row["as_of"],
            source=row["source"],
        )
        for row in rows("prices")
    }


def find_price(cloud: CloudKind, region: str, item: str) -> Price | None:
    """Return the price of an item (`gpu:nvidia-tesla-t4`, `pd-balanced-gib`, `nat`, …) in a region, or the
    cloud's rate for all regions.
    """
    return _prices().get((cloud.value, region, item)) or _prices().get((cloud.value, GLOBAL, item))


def machine_price(cloud: CloudKind, region: str, machine_type: str) -> Price | None:
    """Return the price of a machine type in a region, without attached accelerators and disks."""
    return _prices().get((cloud.value, region, machine_type))


def priced_regions(cloud: CloudKind, item: str) -> list[str]:
    """Return the regions in which the price of an item is known."""
    return [region for kind, region, name in _prices() if kind == cloud.value and name == item]


def node_items(
    cloud: CloudKind, region: str, machine_type: str, accelerator: str = "", count: int = 0
) -> list[tuple[str, Price | None, int]]:
    """Return the billed items of a node without its disks: the item, its price, None if unknown, and a count.

    Args:
        cloud: the cloud.
        region: the region.
        machine_type: the machine type.
        accelerator: type of the attached accelerators; empty for those that are part of the machine type.
        count: number of attached accelerators.
    """
    machine = (machine_type, machine_price(cloud, region, machine_type), 1)
    if not accelerator:
        return [machine]
    return [machine, (accelerator, find_price(cloud, region, f"gpu:{accelerator}"), count)]


def lowest_price(cloud: CloudKind, item: str) -> Price | None:
    """Return the lowest price of an item in any region; None if unknown."""
    known = [
        p for (kind, _, name), p in _prices().items() if kind == cloud.value and name == item and p.on_demand
    ]
    return min(known, key=lambda price: price.on_demand or 0.0, default=None)
