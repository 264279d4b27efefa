"""The price table of the catalog: `python -m rehearsal.prices` brings it up to date from maintained lists, as
a workflow does weekly, and prints what changed, in Markdown.

Azure's list is public (prices.azure.com). Google's needs an account of Google Cloud; the table takes it from
cloudpilot-ai/karpenter-provider-gcp (Apache-2.0), which a workflow there reads weekly. A row keeps its date
and source while its prices stay, and a row that a list lacks stays.
"""

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import ebbtide.declaration.catalog
from ebbtide.clients.clouds.connect import price_source
from ebbtide.clients.clouds.interfaces import PriceSource
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.catalog.machines import machine_names
from ebbtide.declaration.catalog.prices import Price, PriceKey, regional_items
from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind

TABLE: Final = Path(ebbtide.declaration.catalog.__file__).parent / "data/prices.csv"

_REPOSITORY: Final = "cloudpilot-ai/karpenter-provider-gcp"
_FILE: Final = "pkg/providers/pricing/initial-prices.json"
_RATES: Final = {"on-demand": "usd_per_hour_on_demand", "spot": "usd_per_hour_spot"}
_SHOWN: Final = 20

Row = dict[str, str]


def google(read: Callable[[str], str]) -> Iterator[tuple[PriceKey, Price]]:
    """Yield the prices of machine types on Google Cloud.

    Args:
        read: returns the text at an address; raises `OSError` if there is none.
    """
    commits = f"https://api.github.com/repos/{_REPOSITORY}/commits?per_page=1&path={_FILE}"
    (commit,) = json.loads(read(commits))
    sha, date = commit["sha"], commit["commit"]["committer"]["date"][: len("2026-11")]
    source = f"{_REPOSITORY}@{sha[:8]} {Path(_FILE).name}"
    prices = json.loads(read(f"https://raw.githubusercontent.com/{_REPOSITORY}/{sha}/{_FILE}"))["prices"]
    names = machine_names(CloudKind.GKE)
    for region in sorted({*prices} & {*Locations(CloudKind.GKE).regions()}):
        for name in names:
            on_demand, spot = (
                prices[region].get(capacity, {}).get(name) for capacity in ("on_demand", "spot")
            )
            if on_demand or spot:
                yield (CloudKind.GKE.value, region, name), Price(on_demand, spot, None, "", date, source)


def azure(source: PriceSource) -> Iterator[tuple[PriceKey, Price]]:
    """Yield the prices of machine types and disks on Azure, of every region with an answer."""
    items = regional_items(CloudKind.AKS)
    for region in Locations(CloudKind.AKS).regions():
        for item, price in source.prices(region, items).items():
            yield (CloudKind.AKS.value, region, item), price


def merged(table: Sequence[Row], new: Mapping[PriceKey, Price]) -> Iterator[tuple[Row | None, Row]]:
    """Yield each row of the table before and after, in its order; those that are new have none before.

    A rate that a list lacks stays beside the one that it has.
    """
    before = {(row["cloud"], row["region"], row["item"]): row for row in table}
    for key in sorted({**before, **new}):
        old = before.get(key)
        price = new.get(key)
        if price is None:
            yield old, before[key]
            continue
        row = old or dict.fromkeys(table[0], "")
        given = zip(_RATES.values(), (price.on_demand, price.spot), strict=True)
        rates = {column: _cell(rate) if rate else row[column] for column, rate in given}
        if old and all(_same(old[column], rate) for column, rate in rates.items()):
            yield old, old
            continue
        named = dict(zip(("cloud", "region", "item"), key, strict=True))
        yield old, {**row, **named, "as_of": price.as_of, "source": price.source, **rates}


def _cell(rate: float) -> str:
    return f"{rate:.6f}".rstrip("0").rstrip(".")


def _same(old: str, new: str) -> bool:
    return old == new or bool(old and new and abs(float(old) - float(new)) < 2e-6)  # noqa: PLR2004 - rounding


def text(table: Sequence[Row]) -> str:
    """Return a table as CSV."""
    written = StringIO()
    writer = csv.DictWriter(written, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return written.getvalue()


def report(changes: Iterable[tuple[Row | None, Row]]) -> str:
    """Return the changes in Markdown: their number, and the largest ones."""
    added, moved = 0, list[tuple[float, str]]()
    for old, new in changes:
        added += old is None
        for name, column in _RATES.items() if old and old is not new else ():
            if old and not _same(old[column], new[column]):
                ratio = float(new[column]) / float(old[column]) if float(old[column] or 0) else 0.0
                row = (new["cloud"], new["region"], new["item"], name, old[column] or "?", new[column])
                moved.append((max(ratio, 1 / ratio) if ratio else 0.0, f"| {' | '.join(row)} |"))
    shown = [row for _, row in sorted(moved, reverse=True)[:_SHOWN]]
    head = ["| cloud | region | item | capacity | before | now |", "|---|---|---|---|---|---|"]
    table = ["", "The largest changes:", "", *head, *shown] if shown else []
    return "\n".join([f"{len(moved)} prices changed, {added} are new.", *table, ""])


def _read(address: str) -> str:
    with urlopen(address, timeout=60) as answer:  # noqa: S310 - the addresses above
        return answer.read().decode()


def main(arguments: list[str]) -> int:
    """Bring the table up to date, and print what changed; return the exit status."""
    argparse.ArgumentParser(prog="python -m rehearsal.prices", description=__doc__).parse_args(arguments)
    table = rows("prices")
    # A machine type without a row costs an unknown amount: the table has those that are common.
    priced = {(row["cloud"], row["item"]) for row in table}
    lists = (google(_read), azure(price_source(CloudKind.AKS)))
    new = {key: price for prices in lists for key, price in prices if (key[0], key[2]) in priced}
    changes = list(merged(table, new))
    TABLE.write_text(text([row for _, row in changes]), encoding="utf-8")
    sys.stdout.write(report(changes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
