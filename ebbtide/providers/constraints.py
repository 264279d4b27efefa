"""Constraints of a type's properties, from the tables `schemas/*.csv`.

`python -m rehearsal.provider_schemas` generates `gcp.csv`, `azure_native.csv` and `kubernetes.csv` from the
providers' own sources; `noted.csv` has constraints that are missing there. Each row has its source.
Constraints: `replace` (a change needs a new resource; `within`: also a change below the property; `unless
SETTING`: unless an input of the provider is true), `computed` (if omitted, the cloud's value stays),
`default` (JSON), `required`, `same` (the name of the comparison that ignores a difference), and the limits
`enum`, `minimum`, `maximum`, `shortest`, `longest`, `pattern`, `validate` (the name of a validation
function).
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from ebbtide.paths import ancestors

_TABLES: Final = ("gcp.csv", "azure_native.csv", "kubernetes.csv", "noted.csv")
_UNLESS: Final = "unless "
_LIMITS: Final = ("enum", "minimum", "maximum", "shortest", "longest", "pattern", "validate")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a value.

    Attributes:
        path: path of the property, without indices.
        name: one of the limits of the tables.
        value: value in the table.
    """

    path: str
    name: str
    value: str

    @property
    def number(self) -> float:
        """The value of a numeric limit."""
        return float(self.value)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an enum."""
        return tuple(self.value.split("|"))


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of a type.

    Attributes:
        replaces: paths of properties whose change needs a new resource.
        replaces_within: those of them that include everything below them, such as maps.
        replaces_unless: the input of the provider that makes a property mutable, by path.
        computed: paths of properties that the cloud determines if they are omitted.
        required: properties that are optional in the SDK and required by the API.
        defaults: values that the provider fills in, by path.
        same: names of comparisons, by path.
        limits: limits of values.
    """

    replaces: frozenset[str]
    replaces_within: frozenset[str]
    replaces_unless: Mapping[str, str]
    computed: frozenset[str]
    required: tuple[str, ...]
    defaults: Mapping[str, Any]
    same: Mapping[str, str]
    limits: tuple[Limit, ...]

    def is_replaced(self, path: str) -> bool:
        """Return whether a change at a path without indices needs a new resource."""
        return path in self.replaces or not self.replaces_within.isdisjoint(ancestors(path))


@cache
def constraints_of(token: str) -> Constraints:
    """Return the constraints of a type; empty if no table has the type."""
    rows = _rows().get(token, [])

    def paths(constraint: str, value: str | None = None) -> list[str]:
        return [row[0] for row in rows if row[1] == constraint and value in (None, row[2])]

    return Constraints(
        replaces=frozenset({*paths("replace", ""), *paths("replace", "within")}),
        replaces_within=frozenset(paths("replace", "within")),
        replaces_unless={
            path: value.removeprefix(_UNLESS)
            for path, constraint, value in rows
            if constraint == "replace" and value.startswith(_UNLESS)
        },
        computed=frozenset(paths("computed")),
        required=tuple(paths("required")),
        defaults={path: json.loads(value) for path, constraint, value in rows if constraint == "default"},
        same={path: value for path, constraint, value in rows if constraint == "same"},
        limits=tuple(Limit(*row) for row in rows if row[1] in _LIMITS),
    )


@cache
def _rows() -> dict[str, list[tuple[str, str, str]]]:
    """Return property, constraint and value of every row, by type."""
    result: dict[str, list[tuple[str, str, str]]] = {}
    for name in _TABLES:
        text = (resources.files("ebbtide.providers") / "schemas" / name).read_text()
        for row in csv.DictReader(text.splitlines()):
            result.setdefault(row["type"], []).append((row["property"], row["constraint"], row["value"]))
    return result
