"""The constraints of a type's properties, from tables: `schemas/*.csv`.

`python -m rehearsal.provider_schemas` generates `gcp.csv` and `azure_native.csv` from the providers' own
sources; `noted.csv` has what they cannot give. Each row names its source. Constraints: `replace` (only a new
resource can have another value; `within`: or another value below it), `computed` (omitted, the cloud's value
stays), `default` (JSON), `required`, `same` (the name of the comparison that overlooks a difference), and the
limits `enum`, `minimum`, `maximum`, `shortest`, `longest`, `pattern`, `validate` (the name of a validation
function).
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from ebbtide.recording.values import Plain

_TABLES: Final = ("gcp.csv", "azure_native.csv", "noted.csv")
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
        computed: paths of properties that the cloud decides where they are omitted.
        required: properties that the SDK lets a program omit, and the API does not.
        defaults: what the provider fills in, by path.
        same: names of comparisons, by path.
        limits: of values.
    """

    replaces: frozenset[str]
    replaces_within: frozenset[str]
    computed: frozenset[str]
    required: tuple[str, ...]
    defaults: Mapping[str, Plain]
    same: Mapping[str, str]
    limits: tuple[Limit, ...]


@cache
def constraints_of(token: str) -> Constraints:
    """Return the constraints of a type; none for a type that no table has."""
    rows = _rows().get(token, [])

    def paths(constraint: str, value: str | None = None) -> list[str]:
        return [row[0] for row in rows if row[1] == constraint and value in (None, row[2])]

    return Constraints(
        replaces=frozenset(paths("replace")),
        replaces_within=frozenset(paths("replace", "within")),
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
        text = (resources.files("ebbtide_rehearsal.cloud") / "schemas" / name).read_text()
        for row in csv.DictReader(text.splitlines()):
            result.setdefault(row["type"], []).append((row["property"], row["constraint"], row["value"]))
    return result
