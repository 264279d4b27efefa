"""Reader of the catalog's data files."""

import csv
from importlib.resources import files


def rows(table: str) -> list[dict[str, str]]:
    """Return the rows of `data/<table>.csv`, each cell as text, empty if the fact is unknown."""
    return list(csv.DictReader(lines(table)))


def lines(table: str) -> list[str]:
    """Return the lines of `data/<table>.csv`, the header first, for a table that takes long to parse."""
    text = files("ebbtide.declaration.catalog").joinpath(f"data/{table}.csv").read_text(encoding="utf-8")
    return text.splitlines()


def number(cell: str) -> float | None:
    """Return a cell as a number; None if the fact is unknown."""
    return float(cell) if cell else None
