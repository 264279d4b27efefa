"""Constraints of a type's properties, from the tables `schemas/*.csv`.

`python -m rehearsal.provider_schemas` generates `gcp.csv`, `azure_native.csv` and `kubernetes.csv` from the
providers' own sources, and `kueue.csv` from Kueue's definitions; `noted.csv` has constraints that are missing
there. Each row has its source.
Constraints: `replace` (a change needs a new resource; `within`: also a change below the property; `unless
SETTING`: unless an input of the provider is true), `fixed` (the provider sends a change, and the cloud
refuses it), `recreates` (a change recreates nodes, a few at a time), `computed` (if omitted, the cloud's
value stays), `default` (JSON), `fills` (JSON: the cloud's response has it for an omitted property of an
existing object), `required`, `same` (the name of the comparison that ignores a difference), and the limits
`enum`, `minimum`, `maximum` (a number, or an amount with its unit: `300s`, `10Mi`, `15%`), `shortest`,
`longest`, `pattern`, `seconds` (text such as `600s`; the maximum, if there is one), `validate` (the name of a
validation function), `multiple` (of a number), `most` (items of a list, or keys of a map); of a map, `keys`
(the only ones) and `reserved` (keys that it cannot have); of an object, `rising` (properties whose values
increase, each with the cloud's default: `low=80|high=85`), `exclusive` (properties of which it has at most
one) and `paired` (the second has each key of the first).
"""

import csv
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, Final, cast

from ebbtide.values.paths import ancestors

_TABLES: Final = ("gcp.csv", "azure_native.csv", "kubernetes.csv", "kueue.csv", "noted.csv")
_UNLESS: Final = "unless "
_LIMITS: Final = (
    *("enum", "minimum", "maximum", "shortest", "longest", "pattern", "validate"),
    *("seconds", "multiple", "most", "keys", "reserved", "rising", "exclusive", "paired"),
)
_POOL: Final = "azure-native:containerservice:AgentPool"
_INLINE_POOL: Final = ("azure-native:containerservice:ManagedCluster", "agentPoolProfiles")
"""The inline pools of a cluster, to which the noted limits of pools apply too."""
_SECONDS: Final = re.compile(r"(\d+(?:\.\d{1,9})?)s")
_AMOUNT: Final = re.compile(r"(-?\d+(?:\.\d*)?|\.\d+)([a-zA-Zµ%]*)")
_UNITS: Final = {
    "": ("number", "1"),
    "%": ("percentage", "1"),
    **{f"{letter}i": ("bytes", str(1024**power)) for power, letter in enumerate("KMGT", start=1)},
    **{
        unit: ("seconds", seconds)
        for unit, seconds in {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1"}.items()
    },
    "m": ("seconds", "60"),
    "h": ("seconds", "3600"),
}


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
        """The value of a numeric limit without a unit."""
        return float(self.value)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an enum, or the names of keys or properties."""
        return tuple(self.defaults) if self.name == "rising" else tuple(self.value.split("|"))

    @property
    def defaults(self) -> dict[str, int]:
        """The cloud's default of each property whose value increases, in order."""
        parts = (part.partition("=") for part in self.value.split("|"))
        return {name: int(default) for name, _, default in parts}

    def allows(self, value: Any) -> bool:  # noqa: PLR0911 - a case each
        """Return whether a value is within the limit; true for other types, and for `validate`."""
        match self.name:
            case "enum":
                return value in self.choices
            case "minimum" | "maximum":
                return self._allows_amount(value)
            case "shortest" if isinstance(value, str):
                return len(value) >= self.number
            case "longest" if isinstance(value, str):
                return len(value) <= self.number
            case "multiple" if isinstance(value, int):
                return value % self.number == 0
            case "most" if isinstance(value, list | tuple | Mapping):
                return len(cast("Collection[Any]", value)) <= self.number
            case "pattern" if isinstance(value, str):
                return re.search(self.value, value) is not None
            case "seconds" if isinstance(value, str):
                match = _SECONDS.fullmatch(value)
                return match is not None and (not self.value or Decimal(match[1]) <= Decimal(self.value))
            case "keys" | "reserved" | "rising" | "exclusive" | "paired" if isinstance(value, Mapping):
                return not self.wrong_keys(cast("Mapping[str, Any]", value))
            case _:
                return True

    def _allows_amount(self, value: Any) -> bool:
        bound, amount = _amount(self.value), _amount(value)
        if bound is None or amount is None or bound[0] != amount[0]:
            return bound is None or (bound[0] == "number" and not isinstance(value, str))
        return amount[1] >= bound[1] if self.name == "minimum" else amount[1] <= bound[1]

    def wrong_keys(self, value: Mapping[str, Any]) -> list[str]:
        """Return the keys of a map or an object that violate a limit of its keys."""
        given = [key for key in self.choices if value.get(key) is not None]
        match self.name:
            case "keys":
                return [key for key in value if key not in self.choices]
            case "reserved" | "exclusive":
                return given[0 if self.name == "reserved" else 1 :]
            case "paired":
                first, second = (cast("Mapping[str, Any]", value.get(key) or {}) for key in self.choices)
                return [key for key in first if key not in second]
            case "rising":
                defaults: Mapping[str, Any] = self.defaults
                amounts = {key: _amount(value.get(key, defaults[key])) or ("", Decimal()) for key in defaults}
                wrong = [pair for pair in pairwise(defaults) if not amounts[pair[0]] < amounts[pair[1]]]
                return [next(key for key in (high, low) if key in given) for low, high in wrong if given]
            case _:
                return []


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of a type.

    Attributes:
        replaces: paths of properties whose change needs a new resource.
        replaces_within: those of them that include everything below them, such as maps.
        replaces_unless: the input of the provider that makes a property mutable, by path.
        fixed: paths of properties of which the cloud refuses a change, each with everything below it.
        recreates: paths of properties whose change recreates nodes, each with everything below it.
        computed: paths of properties that the cloud determines if they are omitted.
        required: properties that are optional in the SDK and required by the API.
        defaults: values that the provider fills in, by path.
        fills: values that the cloud fills in, by path.
        same: names of comparisons, by path.
        limits: limits of values.
    """

    replaces: frozenset[str]
    replaces_within: frozenset[str]
    replaces_unless: Mapping[str, str]
    fixed: frozenset[str]
    recreates: frozenset[str]
    computed: frozenset[str]
    required: tuple[str, ...]
    defaults: Mapping[str, Any]
    fills: Mapping[str, Any]
    same: Mapping[str, str]
    limits: tuple[Limit, ...]

    def is_replaced(self, path: str) -> bool:
        """Return whether a change at a path without indices needs a new resource."""
        return path in self.replaces or not self.replaces_within.isdisjoint(ancestors(path))


def _amount(written: Any) -> tuple[str, Decimal] | None:
    """Return the kind and the size of a number, or of text with units: `300`, `1m30s`, `10Mi`, `15%`; None if
    it is neither."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return "number", Decimal(str(written))
    parts = _AMOUNT.findall(written) if isinstance(written, str) else []
    units = [_UNITS.get(unit, ("", "0")) for _, unit in parts]
    kinds = {kind for kind, _ in units}
    if "".join(number + unit for number, unit in parts) != written or len(kinds) != 1 or "" in kinds:
        return None
    return kinds.pop(), sum(
        (Decimal(number) * Decimal(size) for (number, _), (_, size) in zip(parts, units, strict=True)),
        Decimal(),
    )


@cache
def constraints_of(token: str) -> Constraints:
    """Return the constraints of a type; empty if no table has the type."""
    rows = _rows().get(token, [])

    def paths(constraint: str, value: str | None = None) -> list[str]:
        return [row[0] for row in rows if row[1] == constraint and value in (None, row[2])]

    def values(name: str) -> dict[str, Any]:
        return {path: json.loads(value) for path, constraint, value in rows if constraint == name}

    return Constraints(
        replaces=frozenset({*paths("replace", ""), *paths("replace", "within")}),
        replaces_within=frozenset(paths("replace", "within")),
        replaces_unless={
            path: value.removeprefix(_UNLESS)
            for path, constraint, value in rows
            if constraint == "replace" and value.startswith(_UNLESS)
        },
        fixed=frozenset(paths("fixed")),
        recreates=frozenset(paths("recreates")),
        computed=frozenset(paths("computed")),
        required=tuple(paths("required")),
        defaults=values("default"),
        fills=values("fills"),
        same={path: value for path, constraint, value in rows if constraint == "same"},
        limits=tuple(Limit(*row) for row in rows if row[1] in _LIMITS),
    )


def most(token: str, path: str) -> int:
    """Return the maximum number of items of a list, or of keys of a map."""
    limits = (limit for limit in constraints_of(token).limits if (limit.path, limit.name) == (path, "most"))
    return int(next(limits).value)


@cache
def _rows() -> dict[str, list[tuple[str, str, str]]]:
    """Return property, constraint and value of every row, by type."""
    result: dict[str, list[tuple[str, str, str]]] = {}
    for name in _TABLES:
        text = (resources.files("ebbtide.declaration.providers") / "schemas" / name).read_text()
        for row in csv.DictReader(text.splitlines()):
            limit = (row["constraint"], row["value"])
            result.setdefault(row["type"], []).append((row["property"], *limit))
            if name == "noted.csv" and row["type"] == _POOL:
                type_, inside = _INLINE_POOL
                result.setdefault(type_, []).append((f"{inside}.{row['property']}", *limit))
    return result


@cache
def _pattern_words() -> Mapping[str, str]:
    text = (resources.files("ebbtide.declaration.providers") / "schemas" / "patterns.csv").read_text()
    return {
        row["pattern"]: f"{row['words']}, such as {row['example']}"
        for row in csv.DictReader(text.splitlines())
    }


def words_of_pattern(pattern: str) -> str:
    """Return in words what matches a pattern, with an example; the pattern itself if the table lacks it."""
    return _pattern_words().get(pattern, f"text that matches {pattern}")
