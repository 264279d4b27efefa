"""The constraints of a type's properties, from tables: `schemas/*.csv`.

`python -m rehearsal.provider_schemas` generates `gcp.csv`, `azure_native.csv` and `kubernetes.csv` from the
providers' own sources; `noted.csv` has what they cannot give. Each row names its source. Constraints:
`replace` (only a new resource can have another value; `within`: or another value below it; `unless SETTING`:
the same, unless an input of the provider is true), `computed` (omitted, the cloud's value stays), `default`
(JSON), `required`, `same` (the name of the comparison that overlooks a difference), and the limits `enum`,
`minimum`, `maximum`, `shortest`, `longest`, `pattern`, `validate` (the name of a validation function).
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from ebbtide.providers.property_path import ancestors
from ebbtide.recording.values import Plain

_TABLES: Final = ("gcp.csv", "azure_native.csv", "kubernetes.csv", "noted.csv")
_UNLESS: Final = "unless "
_LIMITS: Final = ("enum", "minimum", "maximum", "shortest", "longest", "pattern", "validate")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a value.

    Attributes:
        path: of the property, without indices.
        name: one of the limits of the tables.
        value: as the table has it.
    """

    path: str
    name: str
    value: str

    @property
    def number(self) -> float:
        """The value of a limit that is a number."""
        return float(self.value)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an enum."""
        return tuple(self.value.split("|"))


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of a type.

    Attributes:
        replaces: paths of properties that only a new resource can have otherwise.
        replaces_within: those of them to which all that is below them belongs, such as maps.
        replaces_unless: the input of the provider that makes a property mutable, by path.
        computed: paths of properties that the cloud decides where they are omitted.
        required: properties that the SDK lets a program omit, and the API does not.
        defaults: what the provider fills in, by path.
        same: names of comparisons, by path.
        limits: of values.
    """

    replaces: frozenset[str]
    replaces_within: frozenset[str]
    replaces_unless: Mapping[str, str]
    computed: frozenset[str]
    required: tuple[str, ...]
    defaults: Mapping[str, Plain]
    same: Mapping[str, str]
    limits: tuple[Limit, ...]

    def is_replaced(self, path: str) -> bool:
        """Report if a change at a path without indices needs a new resource."""
        return path in self.replaces or not self.replaces_within.isdisjoint(ancestors(path))


@cache
def constraints_of(token: str) -> Constraints:
    """Return the constraints of a type; none for a type that no table has."""
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
