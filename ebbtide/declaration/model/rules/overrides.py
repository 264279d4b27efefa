"""Overrides of provider inputs: known fields, valid types and values, no inputs that are derived, and options
that need another one, or exclude one: the rows of `catalog/data/combinations.csv`.

A row's `when` is an option of a pool or of the cluster, alone for any value, or with `=` and its values;
several are joined by ` & `. Its `needs` is the same, or has `!=` and the values that are excluded. The value
`unset` is none, and `supported` a feature of the machine.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.machines import Machine, has_tier_1, machine_series, spelled
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool_inputs import pool_fields
from ebbtide.declaration.model.rules.overridable import CLUSTERS, POOLS, Overridable
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    NO_POOL,
    PoolIn,
    cluster_rule,
    pool_rule,
    pools_of,
)
from ebbtide.declaration.providers.constraints import Limit, constraints_of, words_of_pattern
from ebbtide.text import described, did_you_mean, install_command, or_list
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import ancestors, is_within, path_keys, path_text, value_at

if TYPE_CHECKING:
    from ebbtide.declaration.providers.schema import Property

_REFUSED: Final = "The provider would refuse the resource, or silently ignore the value."
_EXPECTED: Final = {
    "string": "text",
    "bool": "true or false",
    "int": "a whole number",
    "number": "a number",
    "list": "a list",
    "map": "a mapping",
    "object": "a mapping",
}

_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "bool": (bool,),
    "int": (int,),
    "number": (int, float),
    "list": (list, tuple),
    "map": (Mapping,),
    "object": (Mapping,),
}

_OUT_OF_LIMITS: Final = "The cloud refuses the resource."
_TOO_MANY: Final = 12
_DEEP: Final = 3
SOURCE: Final = (
    "the installed provider's own types; ebbtide/declaration/model/rules/overrides.py (pulumi-gcp "
    "10.2.0, azure-native 3.29.0)"
)
_LENGTHS, _RANGE = ("shortest", "longest"), ("minimum", "maximum")
_CONDITION: Final = re.compile(r"(?P<path>(?P<of>pool|cloud)\.[\w.]+)((?P<operator>!=|=)(?P<values>.+))?")
_UNSET: Final = "unset"
_SUPPORTED: Final = "supported"


@dataclass(frozen=True, slots=True)
class _At:
    """A path in overrides.

    Attributes:
        of: the resource.
        keys: keys from the root of the declaration.
        below: number of leading keys that are the path of the overrides.
    """

    of: Overridable
    keys: tuple[str | int, ...]
    below: int

    def __truediv__(self, key: str | int) -> "_At":
        return _At(self.of, (*self.keys, key), self.below)

    @property
    def path(self) -> str:
        """Path in the declaration."""
        return path_text(self.keys)

    @property
    def input(self) -> str:
        """Path in the resource's inputs, as in the table of derived inputs."""
        return ".".join(str(key) for key in self.keys[self.below :])

    @property
    def limits(self) -> list[Limit]:
        """Limits of the input's value in the tables of the providers' constraints."""
        property_path = ".".join(key for key in self.keys[self.below :] if isinstance(key, str))
        return [limit for limit in constraints_of(self.of.token).limits if limit.path == property_path]

    @property
    def shown(self) -> str:
        """Path in the resource's inputs, for messages."""
        return path_text(self.keys[self.below :])


def is_checkable(cloud: CloudKind) -> bool:
    """Return whether the cloud's provider is installed, against whose types overrides are checked."""
    return find_spec(CLOUD_SPECS[cloud].provider_module) is not None


def override_faults(of: Overridable, path: str, overrides: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of the overrides at a path of the declaration."""
    keys = path_keys(path)
    at = _At(of, keys, len(keys))
    derived = list(_derived(at, overrides))
    yield from derived
    if not is_checkable(_cloud(at.of)):
        return
    from ebbtide.declaration.providers.schema import properties  # noqa: PLC0415 - loads the provider, a second of work

    taken = {fault.path for fault in derived}
    for fault in _of_fields(at, properties(at.of.token), overrides):
        if fault.path not in taken:
            yield fault


def _cloud(of: Overridable) -> CloudKind:
    return CloudKind.GKE if of.token.startswith("gcp:") else CloudKind.AKS


def _derived(at: _At, value: object) -> Iterator[Fault]:
    """Yield faults of inputs that Ebbtide derives values from, or on whose value it relies."""
    field, relied = at.of.derived.get(at.input), at.of.relied_on.get(at.input)
    if value is None:
        below = (item for path, item in at.of.relied_on.items() if is_within(path, at.input))
        relied = relied or next(below, None)
    if field is not None:
        yield Fault(
            at.path,
            f"{at.input} is derived from {field}.",
            "The resource would follow the override, but placement, queues, quota and cost would not.",
            f"Write {field} in the declaration, and remove the override.",
        )
    elif relied is not None and value != relied.value:
        wanted = "no value" if relied.value is None else described(relied.value)
        problem = f"{at.input} is {described(value)}, and Ebbtide requires {wanted}."
        yield Fault(at.path, problem, relied.otherwise, relied.instead)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from _derived(at / key, item)


def _of_fields(at: _At, known: Mapping[str, "Property"], value: Mapping[str, Any]) -> Iterator[Fault]:
    for key, item in value.items():
        if key in known:
            yield from _of_value(at / key, known[key].hint, item)
        else:
            yield _unknown(at / key, key, known)


def _of_value(at: _At, hint: Any, value: Any) -> Iterator[Fault]:
    from ebbtide.declaration.providers.schema import alternatives, word  # noqa: PLC0415 - as above

    if value is None and at.input in constraints_of(at.of.token).computed:
        return  # The provider keeps the cloud's value.
    choices = alternatives(hint)
    fitting = [choice for choice in choices if _is_of(word(choice), value)]
    if not fitting:
        yield _wrong_type(at, word(choices[0]), value)
    elif words := [str(member.value) for choice in choices for member in _members(choice)]:
        if value not in words:
            yield _unknown_word(at, str(value), words)
    else:
        yield from _outside(at, value)
        yield from _within(at, fitting[0], value)


def _within(at: _At, hint: Any, value: Any) -> Iterator[Fault]:
    """Yield the faults of what an object, a map or a list contains."""
    from ebbtide.declaration.providers.schema import item_of, properties_of, word  # noqa: PLC0415 - as above

    match word(hint):
        case "object":
            yield from _of_fields(at, properties_of(hint), value)
        case "map":
            for key, item in value.items():
                yield from _of_value(at / key, item_of(hint), item)
        case "list":
            for index, item in enumerate(value):
                yield from _of_value(at / index, item_of(hint), item)
                yield from _missing(at / index, item_of(hint), item)
        case _:
            pass


def _members(choice: Any) -> list[Enum]:
    return list(choice) if isinstance(choice, type) and issubclass(choice, Enum) else []


def _is_of(name: str, value: object) -> bool:
    if isinstance(value, bool) and name in ("int", "number"):
        return False
    return name == "any" or isinstance(value, _PYTHON[name])


def _missing(at: _At, hint: Any, value: object) -> Iterator[Fault]:
    """Yield faults of a list item, which must be complete because lists replace Ebbtide's."""
    from ebbtide.declaration.providers.schema import properties_of, word  # noqa: PLC0415 - as above

    if word(hint) != "object" or not isinstance(value, Mapping):
        return
    for name, schema in properties_of(hint).items():
        if schema.required and name not in value:
            yield Fault(
                (at / name).path,
                f"{at.shown} has no {name}, which the provider requires.",
                _REFUSED,
                f"Add {name}.",
            )


def _wrong_type(at: _At, expected: str, value: object) -> Fault:
    unquoted = expected == "string" and isinstance(value, bool | int | float)
    return Fault(
        at.path,
        f"{at.shown} is {described(value)}; expected {_EXPECTED[expected]}.",
        _REFUSED,
        f"Write {_EXPECTED[expected]}{', in quotes' * unquoted}, or omit it.",
    )


def _unknown_word(at: _At, value: str, words: list[str]) -> Fault:
    return Fault(
        at.path,
        f"{at.shown} cannot be {value}{did_you_mean(value, words)}",
        _REFUSED,
        f"Write {or_list(words)}.",
    )


def _outside(at: _At, value: Any) -> Iterator[Fault]:
    """Yield the fault of a value that a limit does not allow; limits of a list are those of its items."""
    broken = [limit for limit in at.limits if not limit.allows(value)]
    if broken and broken[0].name == "enum":
        yield _unknown_word(at, str(value), list(broken[0].choices))
    elif broken:
        problem = f"{at.shown} cannot be {described(value)}."
        yield Fault(at.path, problem, _OUT_OF_LIMITS, f"Write {_allowed(at, broken[0])}.")


def _allowed(at: _At, limit: Limit) -> str:
    """Describe the values that a limit and its counterpart allow."""
    if limit.name == "pattern":
        return words_of_pattern(limit.value)
    ends = {other.name: other.value for other in at.limits}
    is_text = limit.name in _LENGTHS
    least, most = (ends.get(name) for name in (_LENGTHS if is_text else _RANGE))
    unit = " characters" * is_text
    if least is not None and most is not None:
        return f"{'' if unit else 'a value '}from {least} to {most}{unit}"
    return f"at least {least}{unit}" if most is None else f"at most {most}{unit}"


def _unknown(at: _At, key: str, known: Mapping[str, "Property"]) -> Fault:
    near = did_you_mean(key, known)
    parents = list(_parents(known, key))
    if near != ".":
        fix = f"Write {near.removeprefix('; did you mean ').removesuffix('?')}."
    elif parents:
        near, fix = ".", f"Write it under {or_list(parents)}."
    elif len(known) <= _TOO_MANY:
        fix = f"Write one of {', '.join(known)}, or omit it."
    else:
        fix = "Remove it, or write a field from the provider's documentation."
    name = at.of.token.rpartition(":")[2]
    return Fault(at.path, f"The provider's {name} has no {at.shown}{near}", _REFUSED, fix)


def _parents(known: Mapping[str, "Property"], key: str, path: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the paths of nested objects that have a field of that name."""
    from ebbtide.declaration.providers.schema import properties_of, word  # noqa: PLC0415 - as above

    for name, schema in known.items():
        if depth < _DEEP and word(schema.hint) == "object":
            nested = f"{path}.{name}" if path else name
            fields = properties_of(schema.hint)
            if key in fields:
                yield nested
            yield from _parents(fields, key, nested, depth + 1)


def unchecked(cluster: Cluster) -> tuple[Fault, ...]:
    """Return a warning if the declaration has overrides, but the provider with their types is not
    installed."""
    cloud = cluster.site.cloud
    cloud_fields = {
        "overrides": cluster.cloud.overrides,
        "resources": cluster.cloud.resources.model_fields_set,
    }
    written = [f"cloud.{name}" for name, value in cloud_fields.items() if value]
    written += [f"pools[{index}].overrides" for index, pool in enumerate(cluster.pools) if pool.overrides]
    if not written or is_checkable(cloud):
        return ()
    module = CLOUD_SPECS[cloud].provider_module
    fault = Fault(
        written[0],
        f"Overrides are not checked: {module} is not installed.",
        "A misspelt field is only found by the preview.",
        f"Install it with: {install_command(cloud.value)}.",
        rule="provider-installed",
    )
    return (fault,)


@pool_rule("supported pool overrides", SOURCE)
def _pool(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.overrides:
        of = POOLS[pool.site.cloud].beside(["gpuDirect"] if pool.pool.gpu_direct else ())
        if pool.pool.machine and spelled(str(pool.pool.overrides.get("vmSize"))) == pool.pool.machine.type:
            # The same machine as Azure has it, which compares sizes without case; the provider does not.
            of = replace(of, derived={key: name for key, name in of.derived.items() if key != "vmSize"})
        yield from override_faults(of, pool.at("overrides"), pool.pool.overrides)
        yield from _removed(pool)


def _removed(pool: PoolIn) -> Iterator[Fault]:
    """Yield faults of inputs that are left to the cloud, and of which a declared field is a part."""
    overrides = pool.pool.overrides
    fields = [field for field in pool_fields() if field.is_written(pool.pool)]
    paths = [(path, field.path) for field in fields for item in field.inputs for path in item.paths]
    for path, name in paths:
        for left in ancestors(path):
            above, _, key = left.rpartition(".")
            holder = value_at(overrides, above) if above else overrides
            if isinstance(holder, Mapping) and cast("Mapping[str, object]", holder).get(key, left) is None:
                yield Fault(
                    pool.at(f"overrides.{left}"),
                    f"{left} is left to the cloud, and {name} is a part of it.",
                    f"{name} would have no effect.",
                    f"Remove {name}, or the override.",
                )


@cluster_rule("pool overrides with teams", SOURCE)
def _pools_of_teams(cluster: Cluster) -> Iterator[Fault]:
    of = POOLS[cluster.site.cloud]
    of = Overridable(of.token, {}, {path: item for path, item in of.relied_on.items() if item.for_teams})
    for pool in pools_of(cluster) if cluster.teams else ():
        keys = path_keys(pool.at("overrides"))
        yield from _derived(_At(of, keys, len(keys)), pool.pool.overrides)


@cluster_rule("supported cluster overrides", SOURCE)
def _cluster(cluster: Cluster) -> Iterator[Fault]:
    if cluster.cloud.overrides and cluster.cloud.existing is None:
        addons = cluster.addons
        fields = {"teams": cluster.teams, "addons.logs": addons.logs, "addons.metrics": addons.metrics}
        fields |= {"cloud.maintenance": cluster.cloud.maintenance}
        of = CLUSTERS[cluster.site.cloud].beside([name for name, value in fields.items() if value])
        yield from override_faults(of, "cloud.overrides", cluster.cloud.overrides)


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
