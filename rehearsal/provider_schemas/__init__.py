"""Generator of the tables from provider schemas that the review and the fake clouds read.

Here are the rows of the tables, and Pulumi's names for properties of other SDKs.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ebbtide.declaration.providers.schema import Property, alternatives, item_of, properties_of, word


class Row(NamedTuple):
    """A constraint of a property, in the form that `ebbtide.declaration.providers.constraints` reads."""

    type: str
    property: str
    constraint: str
    value: str
    source: str


def as_csv(rows: Iterable[Row]) -> str:
    """Format a table with a header, its rows in order and without duplicates."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows(sorted(set(rows)))
    return text.getvalue()


def from_csv(file: Path) -> list[Row]:
    """Return the rows of a table."""
    with file.open() as table:
        return [Row(**row) for row in csv.DictReader(table)]


def inner_class(hint: Any) -> Any:
    """Return the args class in a property's type: the type itself, or the type of a list's items."""
    for choice in alternatives(hint):
        match word(choice):
            case "object":
                return choice
            case "list":
                return inner_class(item_of(choice))
            case _:
                continue
    return None


def descendants(
    arguments: Any, path: str = "", above: tuple[Any, ...] = ()
) -> Iterator[tuple[str, Property]]:
    """Yield every property of an args class and of its nested objects, with its path."""
    for name, item in properties_of(arguments).items():
        below = f"{path}.{name}" if path else name
        yield below, item
        inner = inner_class(item.hint)
        if inner is not None and inner not in above:
            yield from descendants(inner, below, (*above, inner))
