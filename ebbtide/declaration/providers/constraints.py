"""Tables `schemas/*.csv`: constraints of a type's properties, makers of changes, and needs of its creation.

`python -m rehearsal.provider_schemas` generates `gcp.csv`, `azure_native.csv` and `kubernetes.csv` from the
providers' own sources, and `kueue.csv` from Kueue's definitions; `noted.csv` has constraints that are missing
there. Each row has its source.
Constraints: `replace` (a change needs a new resource; `within`: also a change below the property; `unless
SETTING`: unless an input of the provider is true), `fixed` (the provider sends a change, and the cloud
refuses it), `recreates` (a change recreates nodes, a few at a time), `computed` (if omitted, the cloud's
value stays), `default` (JSON), `fills` (JSON: the cloud's response has it for an omitted property of an
existing object), `required`, `same` (the name of the comparison that ignores a difference), and the limits
`enum`, `minimum`, `maximum`, `shortest`, `longest`, `pattern` and `most` (items of a list, or keys of a map).

Makers of changes that are neither the program's nor a person's are in `makers.csv`. A maker is an
`autoscaler`, the `cloud`, or a `controller` on the cluster; each row has its source. Its condition is
`undeclared` (the program omits the property), `new` (the state does not have it either), `if NAME` (the
property of this name beside it is set and not false), `manager NAME` (the field manager that owns it), or
empty. The maker `elsewhere` is for lists whose items are resources of their own, unless the program has an
item of that name; its condition is the segment before the name in their ids. A property is a path without
indices and quotes, in which `*` matches any text. The type `PACKAGE:*` is each type of a package.

The API or resource provider that must be enabled, and the user's permissions, with a predefined role that has
them, are in `needs.csv`. Each row has the source of the creation's permissions. Those of a refresh are the
requests of the provider's read function (terraform-provider-google-beta 7.45.0; azure-native: GET of the
resource), and of `ebbtide drift`, which lists the roles of service accounts; their roles are Google's as
exported in darkbitio/gcp-iam-role-permissions@8ab2a6ff (2026-08), and Azure's Reader, which has `*/read`.
Permissions are of the project or subscription: those on a single resource that exists are not known before it
is created.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, cast, get_args

from ebbtide.values.paths import ancestors

_TABLES: Final = ("gcp", "azure_native", "kubernetes", "kueue", "noted")
_UNLESS: Final = "unless "
_NUMBERS: Final = (int, float, str)
_LIMITS: Final[Mapping[str, tuple[tuple[type, ...], Callable[[Any, str], bool]]]] = {
    "enum": (_NUMBERS, lambda value, limit: value in limit.split("|")),
    "minimum": (_NUMBERS, lambda value, limit: Decimal(value) >= Decimal(limit)),
    "maximum": (_NUMBERS, lambda value, limit: Decimal(value) <= Decimal(limit)),
    "shortest": ((str,), lambda value, limit: len(value) >= int(limit)),
    "longest": ((str,), lambda value, limit: len(value) <= int(limit)),
    "most": ((list, tuple, Mapping), lambda value, limit: len(value) <= int(limit)),
    "pattern": ((str,), lambda value, limit: re.search(limit, value) is not None),
}
"""The types of the values that each limit is for, and whether it allows one."""
_POOL: Final = "azure-native:containerservice:AgentPool"
_INLINE_POOL: Final = ("azure-native:containerservice:ManagedCluster", "agentPoolProfiles")
"""The inline pools of a cluster, to which the noted limits of pools apply too."""
Maker = Literal["autoscaler", "cloud", "controller"]
PATCH_FORCE: Final = "pulumi.com/patchForce"
"""Annotation with which server-side apply takes over fields that another field manager owns."""
ELSEWHERE = "elsewhere"


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
    def choices(self) -> tuple[str, ...]:
        """The values of an enum."""
        return tuple(self.value.split("|"))

    def allows(self, value: Any) -> bool:
        """Return whether a value is within the limit; true for values of other types."""
        types, check = _LIMITS[self.name]
        if isinstance(value, bool) or not isinstance(value, types):
            return True
        try:
            return check(value, self.value)
        except InvalidOperation:  # text that is no number
            return False


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


def _table(name: str) -> Iterator[dict[str, str]]:
    """Return the rows of a table."""
    text = (resources.files("ebbtide.declaration.providers") / "schemas" / f"{name}.csv").read_text()
    return iter(csv.DictReader(text.splitlines()))


@cache
def _rows() -> dict[str, list[tuple[str, str, str]]]:
    """Return property, constraint and value of every row, by type."""
    result: dict[str, list[tuple[str, str, str]]] = {}
    for name in _TABLES:
        for row in _table(name):
            limit = (row["constraint"], row["value"])
            result.setdefault(row["type"], []).append((row["property"], *limit))
            if name == "noted" and row["type"] == _POOL:
                type_, inside = _INLINE_POOL
                result.setdefault(type_, []).append((f"{inside}.{row['property']}", *limit))
    return result


@cache
def _pattern_words() -> Mapping[str, str]:
    return {row["pattern"]: f"{row['words']}, such as {row['example']}" for row in _table("patterns")}


def words_of_pattern(pattern: str) -> str:
    """Return in words what matches a pattern, with an example; the pattern itself if the table lacks it."""
    return _pattern_words().get(pattern, f"text that matches {pattern}")


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
    rows = _maker_rows()
    return (*rows.get(token, ()), *rows.get(f"{token.partition(':')[0]}:*", ()))


@cache
def _maker_rows() -> Mapping[str, list[MakerRow]]:
    result: dict[str, list[MakerRow]] = {}
    for row in _table("makers"):
        made = MakerRow(row["property"], row["maker"], row["condition"], row["source"])
        result.setdefault(row["type"], []).append(made)
    return result


@dataclass(frozen=True, slots=True)
class Need:
    """A row of the table.

    Attributes:
        api: API of Google Cloud, or namespace of a resource provider of Azure; empty for one that is always
            enabled.
        permissions: permissions of Google Cloud, or actions of Azure; empty for none.
        role: predefined role that has them; empty without permissions.
        reads: permissions of a refresh; empty for none.
        reader: predefined role that has them, and changes nothing; empty without permissions.
        source: where they are documented.
    """

    api: str
    permissions: tuple[str, ...]
    role: str
    reads: tuple[str, ...]
    reader: str
    source: str


def needs_of(tokens: Iterable[str]) -> list[Need]:
    """Return the needs of resource types, without duplicates; none for types that are not in the table."""
    known = rows()
    return list(dict.fromkeys(need for token in tokens for need in known.get(token, ())))


def roles_of(needs: Iterable[Need], *, reading: bool = False) -> dict[str, str]:
    """Return the role of each permission of creations, or of refreshes."""
    if reading:
        return {permission: need.reader for need in needs for permission in need.reads}
    return {permission: need.role for need in needs for permission in need.permissions}


def unknown(tokens: Iterable[str]) -> list[str]:
    """Return the resource types that are not in the table, such as those of a user's own program."""
    return sorted(set(tokens) - rows().keys())


@cache
def rows() -> Mapping[str, list[Need]]:
    """Return the rows of the table by resource type."""
    result: dict[str, list[Need]] = {}
    for row in _table("needs"):
        permissions, reads = (tuple(row[name].split()) for name in ("permissions", "reads"))
        need = Need(row["api"], permissions, row["role"], reads, row["reader"], row["source"])
        result.setdefault(row["type"], []).append(need)
    return result
