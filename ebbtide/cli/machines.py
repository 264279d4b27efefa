"""The `machines` and `prices refresh` commands. Their dependencies are imported on execution."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.consoles import ExitStatus, console, say, write, write_json
from ebbtide.cli.options import ConfigFile, Cwd, Format, Out, PreviewFormat, Stack, stack_files
from ebbtide.errors import EbbtideError
from ebbtide.text import did_you_mean
from ebbtide.values.cloud_kind import CloudKind

if TYPE_CHECKING:
    from rich.table import Table

    from ebbtide.analysis.preview.fitted_table import FittedTable
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.clients.clouds.connect import Refreshed
    from ebbtide.declaration.catalog.machine_offers import MachineOffer
    from ebbtide.declaration.catalog.prices import Price, PriceKey


class MachineSearchError(EbbtideError):
    """A search names an unknown accelerator or region."""

    rule = "machine-search"


def _accelerators() -> list[str]:
    """Return the accelerator types of both clouds, for shell completion."""
    from ebbtide.declaration.catalog.machine_offers import accelerator_types

    return sorted({name for cloud in CloudKind for name in accelerator_types(cloud)})


def _regions() -> list[str]:
    """Return the regions of both clouds, for shell completion."""
    from ebbtide.declaration.catalog.locations import Locations

    return sorted(region for cloud in CloudKind for region in Locations(cloud).regions())


def machines(
    *,
    gpu: Annotated[
        str,
        typer.Option(help="Accelerator type or its short name, such as t4.", autocompletion=_accelerators),
    ] = "",
    cloud: Annotated[CloudKind | None, typer.Option(help="Cloud; by default both.")] = None,
    region: Annotated[
        str, typer.Option(help="Region that offers them, with its prices.", autocompletion=_regions)
    ] = "",
    carbon: Annotated[
        bool, typer.Option("--carbon", help="Compare Google Cloud's regions by the carbon of their power.")
    ] = False,
    format_: Format = PreviewFormat.TEXT,
) -> None:
    """List machine types with accelerators, list prices and zones.

    Prices are of a node without its disks, USD per hour, from the catalog's dated price table. Without
    --region they are those of the region where the machine is cheapest on demand. With --carbon, the machine
    type that is cheapest on demand in each region, the cleanest grid first. Exit status 1: there is no such
    machine type.
    """
    from ebbtide.declaration.catalog.machine_offers import machine_offers

    clouds = _clouds(gpu, cloud, region)
    if carbon:
        offers = _by_carbon(clouds, gpu, region)
    else:
        offers = [offer for kind in clouds for offer in machine_offers(kind, gpu=gpu, region=region)]
    if format_ is PreviewFormat.JSON:
        write_json([_document(offer, carbon=carbon) for offer in offers])
    elif offers and carbon:
        _show_carbon(offers)
    elif offers:
        _show(offers)
    else:
        say(f"No machine type{f' with {gpu}' if gpu else ''} in {region}.")
    if not offers:
        raise typer.Exit(ExitStatus.FOUND)


def _clouds(gpu: str, cloud: CloudKind | None, region: str) -> list[CloudKind]:
    """Return the clouds to search.

    Raises:
        MachineSearchError: no cloud has the region or the accelerator.
    """
    from ebbtide.declaration.catalog.accelerators import short_for
    from ebbtide.declaration.catalog.machine_offers import accelerator_types

    clouds = [cloud] if cloud else list(CloudKind)
    if region:
        known, faults = _known_regions([region], cloud)
        if faults:
            raise MachineSearchError(faults[0])
        clouds = [known[region]]
    types = {name: kind for kind in clouds for name in accelerator_types(kind)}
    if gpu and not short_for(gpu, types):
        names = ", ".join(sorted(types))
        raise MachineSearchError(f"No accelerator {gpu} is known{did_you_mean(gpu, types)} Known: {names}.")
    return clouds


def _known_regions(names: list[str], cloud: CloudKind | None) -> tuple[dict[str, CloudKind], list[str]]:
    """Return the cloud of every region, and what is wrong with given names: unknown, or of another cloud."""
    from ebbtide.declaration.catalog.locations import Locations

    known = {name: kind for kind in CloudKind for name in Locations(kind).regions()}
    faults = [
        f"No region {name} is known{did_you_mean(name, known)}"
        if name not in known
        else f"{name} is a region of {known[name].upper()}: omit --cloud."
        for name in names
        if name not in known or (cloud and known[name] != cloud)
    ]
    return known, faults


def _by_carbon(clouds: list[CloudKind], gpu: str, region: str) -> "list[MachineOffer]":
    """Return the cheapest offer of each region whose carbon is known, the cleanest grid first.

    Raises:
        MachineSearchError: only AKS is searched.
    """
    from ebbtide.declaration.catalog.locations import carbon
    from ebbtide.declaration.catalog.machine_offers import machine_offers

    if CloudKind.GKE not in clouds:
        raise MachineSearchError("Azure publishes no carbon data of its regions: omit --carbon.")
    regions = sorted(
        (name for name in carbon() if region in ("", name)), key=lambda name: carbon()[name].grid_g_per_kwh
    )
    offers = (machine_offers(CloudKind.GKE, gpu=gpu, region=name) for name in regions)
    return [found[0] for found in offers if found]


def _document(offer: "MachineOffer", *, carbon: bool) -> dict[str, Any]:

    from ebbtide.declaration.catalog import locations

    return asdict(offer) | ({"carbon": asdict(locations.carbon()[offer.region])} if carbon else {})


def _show_carbon(offers: "list[MachineOffer]") -> None:
    """Print a row for each region."""
    from ebbtide.analysis.preview.fitted_table import FittedTable
    from ebbtide.declaration.catalog.locations import carbon

    unpriced = [offer.region for offer in offers if not (offer.on_demand or offer.spot)]
    shown = [offer for offer in offers if offer.region not in unpriced]
    regions = [carbon()[offer.region] for offer in shown]
    output = console(sys.stdout)
    if shown:
        columns = {
            "REGION": [offer.region for offer in shown],
            "CARBON-FREE": [f"{region.carbon_free:.0%}" for region in regions],
            "G/KWH": [f"{region.grid_g_per_kwh:.0f}" for region in regions],
            "$/H": [_dollars(offer.on_demand) for offer in shown],
            "SPOT $/H": [_dollars(offer.spot) for offer in shown],
            "MACHINE": [offer.machine for offer in shown],
        }
        output.print(*FittedTable(columns, output.width, ("MACHINE", "SPOT $/H")).lines(), sep="\n")
    if unpriced:
        output.print(f"\nWithout a known price, the cleanest grid first: {', '.join(unpriced)}.")
    (year,) = {region.as_of for region in carbon().values()}
    output.print(f"\nCarbon-free share of Google's power, and grams of CO2 of the grid, in {year}.")


def _show(offers: "list[MachineOffer]") -> None:
    """Print a table for each accelerator, with its memory and zones as the title."""
    output = console(sys.stdout)
    order = sorted(offers, key=lambda offer: (offer.cloud, offer.accelerator, offer.locations))
    for (cloud, accelerator, locations), group in groupby(
        order, key=lambda offer: (offer.cloud, offer.accelerator, offer.locations)
    ):
        rows = list(group)
        memory = rows[0].accelerator_memory_gib if accelerator else None
        title = [accelerator or "no accelerator", *([f"{memory:g} GiB"] if memory else []), _where(locations)]
        output.print(f"{cloud}: {', '.join(part for part in title if part)}", soft_wrap=True)
        output.print(*_table(rows, output.width).lines(), sep="\n")
        output.print()
    dates = sorted({date for offer in offers for date in offer.as_of})
    if dates:
        output.print(f"List prices of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, without disks.")
    if any(offer.spot_estimated or offer.flex_estimated for offer in offers):
        output.print("~ estimated: spot from the price in another region, flex-start from that on demand.")


def _table(offers: "list[MachineOffer]", width: int) -> "FittedTable":
    from ebbtide.analysis.preview.fitted_table import FittedTable

    columns = {
        "MACHINE": [offer.machine for offer in offers],
        "COUNT": [str(offer.count or "") for offer in offers],
        "VCPU": [str(offer.vcpus) for offer in offers],
        "GIB": [f"{offer.memory_gib:g}" for offer in offers],
        "$/H": [_dollars(offer.on_demand) for offer in offers],
        "SPOT $/H": [f"{'~' * offer.spot_estimated}{_dollars(offer.spot)}" for offer in offers],
        "FLEX $/H": [f"{'~' * offer.flex_estimated}{_dollars(offer.flex)}" for offer in offers],
        "PRICES OF": [offer.region for offer in offers],
    }
    return FittedTable(columns, width, ("PRICES OF", "FLEX $/H", "SPOT $/H"))


def _dollars(price: float | None) -> str:
    return "?" if price is None else f"{price:.3f}" if price < 1 else f"{price:.2f}"


def _where(locations: tuple[str, ...]) -> str:
    """Return the zones if they are in one region, else the number of regions; empty if unknown."""
    from ebbtide.declaration.catalog.clouds import region_of

    regions = {region_of(location) for location in locations}
    return ", ".join(locations) if len(regions) == 1 else f"in {len(regions)} regions" if regions else ""


class PriceSelectionError(EbbtideError):
    """A contradictory selection of prices, or an unknown region."""

    rule = "price-selection"


def prices_refresh(
    stack: Stack = None,
    *,
    cloud: Annotated[
        CloudKind | None, typer.Option(help="A cloud's whole price table, instead of a stack's prices.")
    ] = None,
    region: Annotated[
        list[str] | None, typer.Option(help="A region, of the price table or not; may be repeated.")
    ] = None,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Write current list prices as a file for `ebbtide:prices`.

    The prices are those that a stack's cost consists of, or with --cloud or --region those of the price
    table. Azure's list is public. Google's needs credentials: `gcloud auth application-default login`. The
    file is written to standard output or --out, a table of what changed to standard error. Prices of the
    stack's own file that come from no list stay.
    """
    from ebbtide.clients.clouds.connect import merged, price_source, refresh
    from ebbtide.declaration.catalog.prices import price_file

    is_table = bool(cloud or region)
    if is_table and (stack or config_file):
        raise PriceSelectionError("A stack and --cloud or --region exclude each other. Write one of them.")
    files = None if is_table else stack_files(stack, config_file, cwd)
    keys = _table_keys(cloud, region or []) if files is None else _stack_keys(files)
    with files.prices() if files else nullcontext():
        refreshed = refresh(keys, price_source)
        if is_table and not any(change.new for change in refreshed):
            raise PriceSelectionError(
                f"The price list has no prices in {', '.join(sorted({key[1] for key in keys}))}, so no file "
                "was written. Choose another region, or write rows of your own."
            )
        write(price_file(merged(refreshed)), out)
    _show_refreshed(refreshed)
    if out and (advice := _advice(out, files)):
        console(sys.stderr).print(advice, markup=False, soft_wrap=True)


def _advice(out: Path, files: "StackFiles | None") -> str:
    """Return advice on how to use the written file; empty if the stack's file already names it."""
    if files is None:
        return f"To use it, write `ebbtide:prices: {out.name}` under `config:` of a stack's file beside it."
    root, written = files.root.resolve(), out.resolve()
    if files.prices_file and (root / files.prices_file).resolve() == written:
        return ""
    name = written.relative_to(root) if written.is_relative_to(root) else written
    return f"To use it, write `ebbtide:prices: {name}` under `config:` in {files.config_file}."


def _stack_keys(files: "StackFiles") -> "set[PriceKey]":
    """Return the keys of the prices in a stack's cost."""
    from ebbtide.analysis.charges import charges
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi
    from ebbtide.analysis.reading.pools import read_clusters, read_pools
    from ebbtide.declaration.catalog.prices import price_lookups

    recording = record_stack(files)
    with price_lookups() as keys:
        charges(recording, read_clusters(recording), read_pools(recording))
    return keys


def _table_keys(cloud: CloudKind | None, regions: list[str]) -> "set[PriceKey]":
    """Return the keys of the table's prices in regions, by default all regions of a cloud."""
    from ebbtide.declaration.catalog.prices import regional_items, regions_with_prices

    known, faults = _known_regions(regions, cloud)
    if faults:
        raise PriceSelectionError("\n".join(faults))
    if cloud and not regions:
        regions = regions_with_prices(cloud)
    return {(known[name].value, name, item) for name in regions for item in regional_items(known[name])}


def _show_refreshed(refreshed: "Iterable[Refreshed]") -> None:
    """Print the prices by cloud and region: old, new and unchanged ones."""
    output = console(sys.stderr)
    for (cloud, region), group in groupby(refreshed, key=lambda change: change.key[:2]):
        changes = list(group)
        new = [change for change in changes if change.new]
        if new:
            output.print(f"{cloud} {region}: {_dated(new[0].new)}", soft_wrap=True)
            output.print(
                _price_table(
                    "$/H", "SPOT $/H", "FLEX $/H", rows=[(change.key[2], *_cells(change)) for change in new]
                )
            )
            output.print()
        if staying := [_staying(change) for change in changes if change.old and not change.new]:
            output.print(f"{cloud} {region}: unchanged, not in the list")
            output.print(_price_table("$/H", "SOURCE", rows=staying))
            output.print()
        if unknown := [change.key[2] for change in changes if not (change.old or change.new)]:
            output.print(
                f"{cloud} {region}: unknown, in neither the list nor the table: {', '.join(unknown)}"
            )
            output.print("Costs with them are a minimum. Write rows of your own for them into the file.")
            output.print()


def _price_table(*headings: str, rows: Iterable[tuple[str, ...]]) -> "Table":
    """Return a table of items, with right-aligned numbers."""
    from ebbtide.analysis.preview.fitted_table import plain_table

    table = plain_table("ITEM", *headings, right={*headings} - {"SOURCE"})
    for row in rows:
        table.add_row(*row)
    return table


def _cells(change: "Refreshed") -> Iterator[str]:
    for capacity in ("on-demand", "spot", "flex-start"):
        old, new = (_rate(price, capacity) for price in (change.old, change.new))
        yield new if old == new else f"{old} -> {new}"


def _rate(price: "Price | None", capacity: str) -> str:
    if price is None:
        return _exact(None)
    return f"{'~' if price.is_estimated(capacity) else ''}{_exact(price.of(capacity))}"


def _staying(change: "Refreshed") -> tuple[str, str, str]:
    """Return item, price and source of a price that the list does not replace."""
    source = f"your own: {_dated(change.old)}" if change.is_own else _dated(change.old)
    return change.key[2], _exact(change.old.on_demand if change.old else None), source


def _dated(price: "Price | None") -> str:
    return f"{price.source}, {price.as_of or 'undated'}" if price else "unknown"


def _exact(price: float | None) -> str:
    return "?" if price is None else f"{price:.4g}"
