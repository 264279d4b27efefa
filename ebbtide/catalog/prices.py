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
    """Price of an item (`gpu:nvidia-tesla-t4`, `pd-balanced-gib`, `nat`, …) in a region, or the cloud's one
    rate for all."""
    return _prices().get((cloud.value, region, item)) or _prices().get((cloud.value, GLOBAL, item))


def machine_price(cloud: CloudKind, region: str, machine_type: str) -> Price | None:
    """Price of a machine type in a region, without attached accelerators and boot disk; None where it was
    not found."""
    return _prices().get((cloud.value, region, machine_type))


def lowest_price(cloud: CloudKind, item: str) -> Price | None:
    """The price of an item in whichever region sells it for least; None where no region's was found."""
    known = [
        p for (kind, _, name), p in _prices().items() if kind == cloud.value and name == item and p.on_demand
    ]
    return min(known, key=lambda price: price.on_demand or 0.0, default=None)
