"""Prices, USD per hour: list prices of `data/prices.csv`, each with a date and a source, and user prices; and
the SKUs of Google Cloud's price catalog."""

import csv
import re
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Final, TypeAlias

from ebbtide.declaration.catalog.disks import disk_items, local_ssds
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.catalog.machines import find_machine
from ebbtide.declaration.catalog.tables import lines, number, rows
from ebbtide.errors import EbbtideError
from ebbtide.text import did_you_mean, printable
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.user_files import UserFileError, read_text

GLOBAL = "global"
"""Region of a rate that applies to every region of a cloud."""
PriceKey: TypeAlias = tuple[str, str, str]
"""Cloud, region or `global`, and item."""
_REQUIRED: Final = ("cloud", "region", "item", "usd_per_hour_on_demand", "as_of")
_OPTIONAL: Final = ("usd_per_hour_spot", "usd_per_hour_flex", "note", "source")
_RATES: Final = ("usd_per_hour_on_demand", "usd_per_hour_spot", "usd_per_hour_flex")
_COLUMNS: Final = ("cloud", "region", "item", *_RATES, "note", "as_of", "source")
_RATE: Final = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?")
_lookups: ContextVar[set[PriceKey] | None] = ContextVar("lookups", default=None)
_SHARED_CORE: Final = {"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1.0}
"""Billed vCPUs of shared-core machines (Cyclenerd/google-cloud-pricing-cost-calculator@dac31281,
build/gcp.yml)."""
_BY_ACCELERATOR: Final = frozenset({"a4", "ct5lp", "ct6e"})
"""Families billed by the accelerator only, including the machine's vCPUs, memory and local SSDs: a GPU slice
of A4, a chip of a TPU (SKUs that price parsers found in the catalog, public project files of 2026-09)."""


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
        spot_estimated: whether the spot price is an estimate (see `_estimated`).
        flex_estimated: whether the flex-start price is an estimate.
    """

    on_demand: float | None
    spot: float | None
    flex: float | None
    note: str
    as_of: str
    source: str
    spot_estimated: bool = False
    flex_estimated: bool = False

    def of(self, capacity: str) -> float | None:
        """Return the price of a capacity type (`spot`, `flex-start`, …); None if unknown.

        Reserved machines are billed as on-demand ones, used or not. Those of a reservation in calendar mode
        (`calendar`) have a price of their own, which the tables lack: it does not exceed the on-demand price
        (cloud.google.com/products/dws/pricing, 2026).
        """
        match capacity:
            case "spot" | "preemptible":
                return self.spot
            case "flex-start" | "queued":
                return self.flex
            case _:
                return self.on_demand

    def is_estimated(self, capacity: str) -> bool:
        """Return whether the price of a capacity type is an estimate."""
        match capacity:
            case "spot" | "preemptible":
                return self.spot_estimated
            case "flex-start" | "queued":
                return self.flex_estimated
            case "calendar":
                return True
            case _:
                return False


Prices: TypeAlias = Mapping[PriceKey, Price]
"""Prices by key."""


_own: ContextVar[Prices] = ContextVar("own", default={})  # noqa: B039 - never changed


class PriceFileError(EbbtideError):
    """A price file is invalid; the message has every fault with its line."""

    rule = "prices"


def own_prices(file: Path, regions: Collection[str] = ()) -> AbstractContextManager[None]:
    """Return a context with rows of the price table replaced by those of a file.

    Args:
        file: CSV with the columns of `data/prices.csv`: cloud, region or `global`, item, USD per hour and
            date; spot and flex-start prices, note and source may be omitted.
        regions: names of regions that the tables lack.

    Raises:
        PriceFileError: the file is invalid; the message has every fault.
    """
    return replaced_prices(_read(file, regions))


@contextmanager
def replaced_prices(prices: Prices) -> Generator[None]:
    """Replace rows of the price table within a context, and none of an outer one."""
    token = _own.set(prices)
    try:
        yield
    finally:
        _own.reset(token)


@contextmanager
def price_lookups() -> Generator[set[PriceKey]]:
    """Collect the keys of all prices that are looked up within a context, including unknown ones."""
    keys: set[PriceKey] = set()
    token = _lookups.set(keys)
    try:
        yield keys
    finally:
        _lookups.reset(token)


def current_own_prices() -> Prices:
    """Return the prices of `own_prices`; empty outside of its context."""
    return _own.get()


def price_file(prices: Prices) -> str:
    """Format prices as a file for `own_prices`; an unknown rate is left empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for (cloud, region, item), price in sorted(prices.items()):
        rates = (price.on_demand, price.spot, price.flex)
        writer.writerow((cloud, region, item, *map(_cell, rates), price.note, price.as_of, price.source))
    return text.getvalue()


def _cell(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.9f}".rstrip("0").rstrip(".")


def _read(file: Path, regions: Collection[str]) -> Prices:
    """Read a price file; `regions` are known besides those of the tables."""
    try:
        text = read_text(file)
    except UserFileError as error:
        raise PriceFileError(f"{file}: {error}") from error
    reader = csv.reader(StringIO(text), strict=True)
    table: list[tuple[int, list[str]]] = []
    try:
        table += [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise PriceFileError(f"{file}:{reader.line_num}: The line is not CSV: {error}.") from error
    head = table[0][1] if table else []
    columns = set(head)
    missing, unknown = {*_REQUIRED} - columns, columns - {*_REQUIRED, *_OPTIONAL}
    repeated = {name for name in columns if head.count(name) > 1}
    if missing or unknown or repeated:
        raise PriceFileError(
            f"{file}:1: {_columns(missing, 'missing')}{_columns(unknown, 'unknown')}"
            f"{_columns(repeated, 'repeated')}Write {','.join((*_REQUIRED, *_OPTIONAL))}."
        )
    faults: list[str] = []
    prices: dict[PriceKey, Price] = {}
    lines: dict[PriceKey, int] = {}
    for line, cells in table[1:]:
        row = {**dict.fromkeys(_OPTIONAL, ""), **dict(zip(head, cells, strict=False))}
        if len(cells) != len(head):
            problem = f"The line has {len(cells)} cells, and the header has {len(head)}."
            faults.append(f"{file}:{line}: {problem} Write one for each column.")
        elif any(cell != printable(cell, one_line=True) for cell in cells):
            faults.append(f"{file}:{line}: A cell has a control character. Remove it.")
        elif found := [*_faults(row, regions), *_repeated(lines.setdefault(_key(row), line), line)]:
            faults += (f"{file}:{line}: {fault}" for fault in found)
        else:
            prices[_key(row)] = _price(row, str(file))
    if faults:
        raise PriceFileError("\n".join(faults))
    return prices


def _repeated(first: int, line: int) -> Iterator[str]:
    if first != line:
        yield f"The price is already in line {first}. Remove one of the two."


def _columns(names: set[str], adjective: str) -> str:
    return f"{adjective} columns {', '.join(sorted(names))}. " if names else ""


def _faults(row: Mapping[str, str], regions: Collection[str]) -> Iterator[str]:
    clouds = {cloud.value: cloud for cloud in CloudKind}
    if (cloud := clouds.get(row["cloud"])) is None:
        yield f"No cloud {row['cloud']} is known. Write {' or '.join(clouds)}."
    else:
        known = {GLOBAL, *Locations(cloud).regions(), *regions_with_prices(cloud), *regions}
        if row["region"] not in known:
            fix = did_you_mean(row["region"], known)
            yield f"No region {row['region']} is known{fix} Add a newer one to cloud.regions."
        if row["item"] not in _items(cloud):
            yield f"No item {row['item']} has a price{did_you_mean(row['item'], _items(cloud))}"
    for name in _RATES:
        if row[name] and not _RATE.fullmatch(row[name]):
            yield f"{name} is {row[name]}. Write a number of USD per hour that is not negative."
    if not _is_date(row["as_of"]):
        problem = f"is {row['as_of']}" if row["as_of"] else "is empty"
        yield f"as_of {problem}. Write the date of the price, such as 2026-11 or 2026-11-23."


@cache
def _items(cloud: CloudKind) -> frozenset[str]:
    """Return the items that can have a price."""
    priced = (name for kind, _, name in _rows() if kind == cloud.value)
    return frozenset((*regional_items(cloud), *priced))


def _is_date(text: str) -> bool:
    """Return whether a text is a month or a day of the calendar, as 2026-11 or 2026-11-23."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text if text.count("-") > 1 else f"{text}-01")
    except ValueError:
        return False
    return True


def _key(row: Mapping[str, str]) -> PriceKey:
    return row["cloud"], row["region"], row["item"]


def _price(row: Mapping[str, str], source: str) -> Price:
    on_demand, spot, flex = (number(row[name]) for name in _RATES)
    return Price(on_demand, spot, flex, row["note"], row["as_of"], row["source"] or source)


@cache
def _rows() -> Mapping[PriceKey, str]:
    """Return the lines of the price table, of which a stack needs few: parsing all takes 60 ms."""
    split = (line.split(",", 3) for line in lines("prices")[1:])
    return {(cloud, region, item): rest for cloud, region, item, rest in split}


@cache
def _regions() -> Mapping[tuple[str, str], list[str]]:
    """Return the regions of the price table by cloud and item."""
    regions: dict[tuple[str, str], list[str]] = {}
    for cloud, region, item in _rows():
        regions.setdefault((cloud, item), []).append(region)
    return regions


@cache
def _list_price(key: PriceKey) -> Price | None:
    """Return a price of the table; None if unknown.

    The spot price of an AKS machine which is known in other regions only, or of others of its family, is
    estimated, and the flex-start price of machines and accelerators on GKE. An estimated flex-start price is
    the on-demand price, which it does not exceed (Google Cloud, DWS pricing, 2026). An estimated spot price
    is the on-demand price, times the highest share that spot has of it elsewhere. Of 39 machine types in four
    regions, spot costs 18.5 % of on-demand in 108 cases, up to 35 % in 37, and more in 9 (Azure Retail Prices
    API; andy-diericks/azure-pricing-radar@1b7f554, 2026-08-20).
    """
    if (line := _rows().get(key)) is None:
        return None
    cloud, _, item = key
    price = _price(dict(zip(_COLUMNS, (*key, *next(csv.reader([line]))), strict=True)), "")
    share = _spot_shares().get(item) or _spot_shares().get(_family(item))
    if price.spot is None and price.on_demand and share:
        price = replace(price, spot=round(price.on_demand * share, 6), spot_estimated=True)
    is_of_a_node = item in _machines() or item.startswith("gpu:")
    if cloud == CloudKind.GKE and price.flex is None and price.on_demand and is_of_a_node:
        price = replace(price, flex=price.on_demand, flex_estimated=True)
    return price


@cache
def _machines() -> frozenset[str]:
    return frozenset(row["machine_type"] for row in rows("machines"))


def _family(item: str) -> str:
    machine = find_machine(CloudKind.AKS, item)
    return machine.family if machine else ""


@cache
def _spot_shares() -> Mapping[str, float]:
    """Return the highest share of the on-demand price that spot has in any region, by AKS machine type and
    family."""
    shares: dict[str, float] = {}
    for (cloud, _, item), line in _rows().items():
        on_demand, spot, _ = line.split(",", 2)
        if cloud == CloudKind.AKS and spot and on_demand:
            for name in (item, _family(item)):
                shares[name] = max(shares.get(name, 0.0), float(spot) / float(on_demand))
    return shares


def _find(key: PriceKey) -> Price | None:
    """Return the user's own price, else the list price."""
    cloud, _, item = key
    own = _own.get()
    return own.get(key) or (None if (cloud, GLOBAL, item) in own else _list_price(key))


def _known(cloud: CloudKind, item: str) -> Iterator[tuple[str, Price]]:
    """Yield the regions in which the price of an item is known, and the price."""
    own = (place for kind, place, name in _own.get() if (kind, name) == (cloud, item))
    for region in dict.fromkeys((*_regions().get((cloud.value, item), ()), *own)):
        if price := _find((cloud.value, region, item)):
            yield region, price


def find_price(cloud: CloudKind, region: str, item: str) -> Price | None:
    """Return the price of an item in a region, or the cloud's rate for all regions.

    Args:
        item: a machine type, `gpu:nvidia-tesla-t4`, `pd-balanced-gib`, `nat`, …
    """
    key = (cloud.value, region or GLOBAL, item)
    if (keys := _lookups.get()) is not None:
        keys.add(key)
    return _find(key) or _find((cloud.value, GLOBAL, item))


def priced_regions(cloud: CloudKind, item: str) -> list[str]:
    """Return the regions in which the price of an item is known."""
    return [region for region, _ in _known(cloud, item)]


def regional_items(cloud: CloudKind) -> list[str]:
    """Return the items whose prices differ between regions: machine types, accelerators, disks."""
    machines = (machine["machine_type"] for machine in rows("machines") if machine["cloud"] == cloud.value)
    priced = (name for kind, region, name in _rows() if kind == cloud.value and region != GLOBAL)
    return sorted({*machines, *priced, *disk_items(cloud)})


def regions_with_prices(cloud: CloudKind) -> list[str]:
    """Return the regions of the table."""
    return sorted({region for kind, region, _ in _rows() if kind == cloud.value and region != GLOBAL})


def node_items(
    cloud: CloudKind, region: str, machine_type: str, accelerator: str = "", count: int = 0
) -> list[tuple[str, Price | None, int]]:
    """Return the billed items of a node without its disks: item, price (None if unknown) and count.

    Args:
        cloud: the cloud.
        region: the region.
        machine_type: the machine type.
        accelerator: type of the attached accelerators; empty for built-in ones.
        count: number of attached accelerators.
    """
    machine = (machine_type, find_price(cloud, region, machine_type), 1)
    if not accelerator:
        return [machine]
    return [machine, (accelerator, find_price(cloud, region, f"gpu:{accelerator}"), count)]


def lowest_price(cloud: CloudKind, item: str) -> Price | None:
    """Return the lowest price of an item in any region; None if unknown."""
    known = [price for _, price in _known(cloud, item) if price.on_demand]
    return min(known, key=lambda price: price.on_demand or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class Skus:
    """Descriptions of a component's SKUs, without the trailing region (`running in Americas`).

    Several descriptions are alternatives: the price catalog names some SKUs differently by region.

    Attributes:
        on_demand: on-demand SKUs.
        spot: spot and preemptible SKUs; empty for none, or if unknown.
        flex: flex-start SKUs, in the price catalog DWS Defined Duration; empty for none, or if unknown.
    """

    on_demand: tuple[str, ...]
    spot: tuple[str, ...]
    flex: tuple[str, ...]


@cache
def _skus() -> dict[str, Skus]:
    def descriptions(cell: str) -> tuple[str, ...]:
        return tuple(filter(None, cell.split("|")))

    return {
        row["component"]: Skus(*(descriptions(row[capacity]) for capacity in ("on_demand", "spot", "flex")))
        for row in rows("skus")
    }


def components(item: str) -> dict[Skus, float]:
    """Return the components of a billed GKE item with their quantities: vCPUs, GiB, accelerators.

    Args:
        item: item of the price table: a machine type, `gpu:<type>` or a disk.

    Returns:
        The components; empty if any is unknown.
    """
    machine = find_machine(CloudKind.GKE, item)
    if machine is None:
        return {_skus()[item]: 1.0} if item in _skus() else {}
    quantities = {f"gpu:{machine.accelerator}": float(machine.accelerator_count)}
    if machine.family not in _BY_ACCELERATOR:
        ssds = local_ssds(item)
        quantities |= {
            f"core:{machine.family}": _SHARED_CORE.get(item, float(machine.vcpus)),
            f"ram:{machine.family}": machine.memory_gib,
            "local-ssd": float((ssds.own or 0) * ssds.gib) if ssds else 0.0,
        }
    if any(count and name not in _skus() for name, count in quantities.items()):
        return {}
    return {_skus()[name]: count for name, count in quantities.items() if count}
