"""Options that need another option, or exclude one: the rows of `catalog/data/combinations.csv`.

A row's `when` is an option of a pool or of the cluster, alone for any value, or with `=` and its values;
several are joined by ` & `. Its `needs` is the same, or has `!=` and the values that are excluded. The value
`unset` is none, and `supported` a feature of the machine.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ebbtide.declaration.catalog.machines import Machine, has_tier_1, machine_series
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import NO_CLUSTER, NO_POOL, PoolIn, cluster_rule, pools_of
from ebbtide.text import or_list
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at

_CONDITION: Final = re.compile(r"(?P<path>(?P<of>pool|cloud)\.[\w.]+)((?P<operator>!=|=)(?P<values>.+))?")
_UNSET: Final = "unset"
_SUPPORTED: Final = "supported"


def _feature(has: Callable[[Machine], bool]) -> Callable[[PoolIn], Any]:
    """Return the fact that a pool's machine supports a feature; otherwise it is the machine's name."""
    return lambda pool: _SUPPORTED if pool.machine is None or has(pool.machine) else pool.machine.name


def _nests(machine: Machine) -> bool:
    series = machine_series(machine.name)
    return (series is None or series.nested_virtualization) and not machine.name.endswith("-metal")


_FACTS: Final[Mapping[str, Callable[[PoolIn], Any]]] = {
    "accelerator": lambda pool: pool.resolved.accelerator_type or "none",
    "architecture": lambda pool: pool.resolved.architecture,
    "capacity": lambda pool: pool.pool.capacity.kind,
    "disk.type": lambda pool: pool.resolved.disk.type,
    "driver": lambda pool: pool.resolved.accelerator.driver if pool.resolved.accelerator else "none",
    "gvnic": lambda pool: pool.resolved.gvnic,
    "image": lambda pool: pool.resolved.image,
    "machine.nestedVirtualization": _feature(_nests),
    "machine.tier1": _feature(lambda machine: has_tier_1(machine.name, machine.vcpus)),
    "zones": lambda pool: "yes" if pool.pool.zones else None,
}
"""Options of a pool, with their defaults, besides its overrides."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of an option.

    Attributes:
        path: `pool` or `cloud`, and the path of the option below it.
        operator: `=` or `!=`; empty for any value.
        values: its values.
    """

    path: str
    operator: str
    values: tuple[str, ...]

    @property
    def is_of_pool(self) -> bool:
        """True for an option of a pool."""
        return self.path.startswith("pool.")

    @property
    def field(self) -> str:
        """Path below the pool or the cloud."""
        return self.path.partition(".")[2]

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.field.removeprefix("overrides.")

    def fact(self, cluster: Cluster, pool: PoolIn | None) -> str | None:
        """Return the value of the option; None if it is not set, or not known."""
        part = pool.pool if pool is not None and self.is_of_pool else cluster.cloud
        if self.field.startswith("overrides."):
            value = value_at(part.overrides, self.name)
        else:
            value = _FACTS[self.field](pool) if pool is not None else getattr(cluster.cloud, self.field)
        return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)

    def holds(self, fact: str | None) -> bool:
        """Return whether it holds for a value of the option."""
        match self.operator:
            case "!=":
                return fact not in self.values
            case "=":
                return (fact or _UNSET) in self.values
            case _:
                return fact is not None

    def needed(self, fact: str | None) -> str:
        """Describe what is needed, for a value that does not hold."""
        match self.operator:
            case "!=":
                return f"is not possible with {self.name} {fact}"
            case "=" if self.values == (_UNSET,):
                return f"cannot be combined with {self.name}"
            case "=" if self.values == (_SUPPORTED,):
                return f"is not supported by {fact}"
            case "=":
                return f"needs {self.name} {or_list(self.values)}"
            case _:
                return f"needs {self.name} beside it"


@dataclass(frozen=True, slots=True)
class Combination:
    """A row of the table.

    Attributes:
        when: the option that messages name.
        given: the other conditions for what it needs.
    """

    cloud: CloudKind
    when: Condition
    given: tuple[Condition, ...]
    needs: Condition
    fix: str


@cache
def combinations() -> tuple[Combination, ...]:
    """Return the rows of the table."""
    table: list[Combination] = []
    for row in rows("combinations"):
        when, *given = map(_condition, row["when"].split(" & "))
        cloud = CloudKind(row["cloud"])
        table.append(Combination(cloud, when, tuple(given), _condition(row["needs"]), row["fix"]))
    return tuple(table)


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    values = match["values"].split("|") if match["values"] else ()
    return Condition(match["path"], match["operator"] or "", tuple(values))


@cluster_rule("options in combination", "catalog/data/combinations.csv, a source in each row")
def _combined(cluster: Cluster) -> Iterator[Fault]:
    written = {True: any(pool.overrides for pool in cluster.pools), False: bool(cluster.cloud.overrides)}
    for row in combinations():
        # Of an existing cluster, its own options are not known.
        unknown = cluster.cloud.existing is not None and not row.needs.is_of_pool
        if row.cloud is cluster.site.cloud and written[row.when.is_of_pool] and not unknown:
            for pool in pools_of(cluster) if row.when.is_of_pool else (None,):
                yield from _violated(row, cluster, pool)


def _violated(row: Combination, cluster: Cluster, pool: PoolIn | None) -> Iterator[Fault]:
    when, needed = row.when.fact(cluster, pool), row.needs.fact(cluster, pool)
    given = all(condition.holds(condition.fact(cluster, pool)) for condition in row.given)
    if not row.when.holds(when) or not given or row.needs.holds(needed):
        return
    others = "".join(f" with {it.name} {or_list(it.values)}" for it in row.given)
    yield Fault(
        pool.at(row.when.field) if pool else row.when.path,
        f"{row.when.name}{f' {when}' if row.when.values else ''}{others} {row.needs.needed(needed)}.",
        NO_POOL if pool else NO_CLUSTER,
        row.fix,
    )
