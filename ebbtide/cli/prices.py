"""The command `prices refresh`. Its dependencies are imported on execution."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import console, write
from ebbtide.cli.options import ConfigFile, Cwd, Out, Stack, stack_files
from ebbtide.errors import EbbtideError
from ebbtide.text import did_you_mean
from ebbtide.values.cloud_kind import CloudKind

if TYPE_CHECKING:
    from rich.table import Table

    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.clients.clouds.connect import Refreshed
    from ebbtide.declaration.catalog.prices import Price, PriceKey


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
    _show(refreshed)
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
    from ebbtide.declaration.catalog.locations import Locations
    from ebbtide.declaration.catalog.prices import regional_items, regions_with_prices

    known = {name: kind for kind in CloudKind for name in Locations(kind).regions()}
    faults = [
        f"No region {name} is known{did_you_mean(name, known)}"
        if name not in known
        else f"{name} is a region of {known[name].upper()}: omit --cloud."
        for name in regions
        if name not in known or (cloud and known[name] != cloud)
    ]
    if faults:
        raise PriceSelectionError("\n".join(faults))
    if cloud and not regions:
        regions = regions_with_prices(cloud)
    return {(known[name].value, name, item) for name in regions for item in regional_items(known[name])}


def _show(refreshed: "Iterable[Refreshed]") -> None:
    """Print the prices by cloud and region: old, new and unchanged ones."""
    output = console(sys.stderr)
    for (cloud, region), group in groupby(refreshed, key=lambda change: change.key[:2]):
        changes = list(group)
        new = [change for change in changes if change.new]
        if new:
            output.print(f"{cloud} {region}: {_dated(new[0].new)}", soft_wrap=True)
            output.print(
                _table(
                    "$/H", "SPOT $/H", "FLEX $/H", rows=[(change.key[2], *_cells(change)) for change in new]
                )
            )
            output.print()
        if staying := [_staying(change) for change in changes if change.old and not change.new]:
            output.print(f"{cloud} {region}: unchanged, not in the list")
            output.print(_table("$/H", "SOURCE", rows=staying))
            output.print()
        if unknown := [change.key[2] for change in changes if not (change.old or change.new)]:
            output.print(
                f"{cloud} {region}: unknown, in neither the list nor the table: {', '.join(unknown)}"
            )
            output.print("Costs with them are a minimum. Write rows of your own for them into the file.")
            output.print()


def _table(*headings: str, rows: Iterable[tuple[str, ...]]) -> "Table":
    """Return a table of items, with right-aligned numbers."""
    from rich.table import Table

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("ITEM", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "SOURCE" else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _cells(change: "Refreshed") -> Iterator[str]:
    for capacity in ("on-demand", "spot", "flex-start"):
        old, new = (_rate(price, capacity) for price in (change.old, change.new))
        yield new if old == new else f"{old} -> {new}"


def _rate(price: "Price | None", capacity: str) -> str:
    if price is None:
        return _dollars(None)
    return f"{'~' if price.is_estimated(capacity) else ''}{_dollars(price.of(capacity))}"


def _staying(change: "Refreshed") -> tuple[str, str, str]:
    """Return item, price and source of a price that the list does not replace."""
    source = f"your own: {_dated(change.old)}" if change.is_own else _dated(change.old)
    return change.key[2], _dollars(change.old.on_demand if change.old else None), source


def _dated(price: "Price | None") -> str:
    return f"{price.source}, {price.as_of or 'undated'}" if price else "unknown"


def _dollars(price: float | None) -> str:
    return "?" if price is None else f"{price:.4g}"
