"""Makers of changes of a resource that are neither the program's nor a person's, from `schemas/makers.csv`.

A maker is an `autoscaler`, the `cloud`, or a `controller` on the cluster; each row has its source. Its
condition is `undeclared` (the program omits the property), `if NAME` (the property of this name beside it is
set and not false), `manager NAME` (the field manager that owns it), or empty. The maker `elsewhere` is for
lists whose items are resources of their own, unless the program has an item of that name; its condition is
the segment before the name in their ids. A property is a path without indices and quotes, in which `*`
matches any text. The type `PACKAGE:*` is each type of a package.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Literal, cast, get_args

Maker = Literal["autoscaler", "cloud", "controller"]
ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class MakerRow:
    """A row of the table.

    Attributes:
        path: path of the property, without indices and quotes.
        maker: the maker; `elsewhere` for a list with other resources.
        condition: its condition; empty if there is none.
        source: where the change is documented.
    """

    path: str
    maker: str
    condition: str
    source: str

    @property
    def known_maker(self) -> Maker | None:
        """The maker; None for a list with other resources."""
        return cast("Maker", self.maker) if self.maker in get_args(Maker) else None

    def applies(self, path: str) -> bool:
        """Return whether a path without indices and quotes is that of the property, or below it."""
        return fnmatchcase(path, self.path) or fnmatchcase(path, f"{self.path}.*")

    def is_of_manager(self, manager: str) -> bool:
        """Return whether the condition is this field manager."""
        word, _, name = self.condition.partition(" ")
        return word == "manager" and fnmatchcase(manager, name)


@cache
def makers_of(token: str) -> tuple[MakerRow, ...]:
    """Return the rows of a resource type, those of its package last."""
    rows = _rows()
    return (*rows.get(token, ()), *rows.get(f"{token.partition(':')[0]}:*", ()))


@cache
def _rows() -> Mapping[str, list[MakerRow]]:
    result: dict[str, list[MakerRow]] = {}
    text = (resources.files("ebbtide.declaration.providers") / "schemas" / "makers.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        made = MakerRow(row["property"], row["maker"], row["condition"], row["source"])
        result.setdefault(row["type"], []).append(made)
    return result
