"""Costs of pools in a cloud's billing export, beside the record's."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbtide.errors import EbbtideError
from ebbtide.operations.ledger import Sum
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, read_text

AGREEMENT: Final = 0.03
"""Largest difference at which the record agrees with the export, as a part of the billed cost."""

_POOL_TAG: Final = re.compile(r'"aks-managed-poolName"\s*:\s*"([^"]*)"')
"""Tag of an AKS pool's machines in the column of tags, with or without the braces of JSON (Azure docs, cost
details schema, 2026)."""


class BillingFileError(EbbtideError):
    """A billing export is invalid."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The cost of a pool in the record and in the billing export.

    Attributes:
        pool: name of the pool.
        recorded: recorded cost; None if the record lacks the pool, or the price of a part of it.
        billed: billed cost; None if the export lacks the pool.
    """

    pool: str
    recorded: float | None
    billed: float | None

    @property
    def difference(self) -> float | None:
        """Difference as a part of the billed cost; None if one of them is unknown."""
        if self.recorded is None or not self.billed:
            return None
        return (self.recorded - self.billed) / self.billed

    @property
    def agrees(self) -> bool:
        """Return whether the record and the export agree."""
        return self.difference is not None and abs(self.difference) <= AGREEMENT


def compare(file: Path, nodes: Sequence[Sum], currency: str) -> tuple[Comparison, ...]:
    """Compare the nodes' recorded costs with a billing export of the same period.

    Args:
        file: CSV with the columns `pool`, `currency` and `cost`, as of the BigQuery query in docs/costs.md;
            or an Azure cost export, with `Tags`, `BillingCurrency` and `CostInBillingCurrency`.
        nodes: the nodes' sums by pool.
        currency: their currency.

    Raises:
        BillingFileError: the file is invalid, or has another currency; the message has every fault.
    """
    billed: dict[str, float] = {}
    faults: list[str] = []
    for line, pool, written, cost in _rows(file):
        try:
            amount = float(cost)
        except ValueError:
            faults.append(f"{file}:{line}: The cost is {cost!r}. Write a number.")
            continue
        if written != currency:
            faults.append(f"{file}:{line}: The currency is {written!r}, and the record's is {currency}.")
        billed[pool] = billed.get(pool, 0.0) + amount
    if faults:
        raise BillingFileError("\n".join(faults))
    recorded = {item.name: None if item.unpriced_hours else item.cost for item in nodes}
    return tuple(
        Comparison(pool, recorded.get(pool), billed.get(pool)) for pool in sorted({*recorded, *billed})
    )


def _rows(file: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line, pool, currency and cost of each row about a pool."""
    try:
        reader = csv.DictReader(io.StringIO(read_text(file, LARGEST_GENERATED)))
    except UserFileError as error:
        raise BillingFileError(f"{file}: {error}") from None
    columns = {name.lower(): name for name in reader.fieldnames or ()}
    if {"pool", "currency", "cost"} <= columns.keys():
        names = [columns[name] for name in ("pool", "currency", "cost")]
    elif {"tags", "billingcurrency", "costinbillingcurrency"} <= columns.keys():
        names = [columns[name] for name in ("tags", "billingcurrency", "costinbillingcurrency")]
    else:
        raise BillingFileError(
            f"{file}:1: It has the columns {', '.join(columns) or 'none'}. Write pool, currency and cost, or "
            "export Azure's Tags, BillingCurrency and CostInBillingCurrency."
        )
    for row in reader:
        pool, currency, cost = (row[name] or "" for name in names)
        if "tags" in columns:
            tag = _POOL_TAG.search(pool)
            pool = tag[1] if tag else ""
        if pool:
            yield reader.line_num, pool, currency, cost
