"""Fields of a pool and the inputs that they become, both ways, from the metadata of the fields."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pydantic import BaseModel

from ebbtide.declaration.model.base import Change, Inputs, OnlyOn, change_of
from ebbtide.declaration.model.forms import Form
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.shape.error_locations import models_in
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import Key, path_keys, python_name

_PARTS: Final = ("accelerator", "capacity", "disk")
"""Fields whose own fields have metadata."""


@dataclass(frozen=True, slots=True)
class PoolField:
    """A field of a pool, or of a part of it.

    Attributes:
        path: path in the declaration, below the pool; for the `kind` of a part, the part's.
        names: its names in Python, from the pool on.
        inputs: its inputs on each cloud.
        only: the only cloud that has it; None for both.
    """

    path: str
    names: tuple[str, ...]
    owner: type[BaseModel]
    inputs: tuple[Inputs, ...]
    only: OnlyOn | None

    def is_written(self, pool: Pool) -> bool:
        """Return whether a pool has another value than the default."""
        part: Any = pool
        *parents, name = self.names
        for parent in parents:
            part = getattr(part, parent)
        if not isinstance(part, self.owner):
            return False
        default = self.owner.model_fields[name].get_default(call_default_factory=True)
        return name == "kind" or getattr(part, name) != default


@cache
def pool_fields() -> tuple[PoolField, ...]:
    """Return every field of a pool, in the order of the declaration."""
    return tuple(_fields(Pool, "", ()))


def _fields(owner: type[BaseModel], path: str, parents: tuple[str, ...]) -> Iterator[PoolField]:
    for name, field in owner.model_fields.items():
        below = path if name == "kind" else f"{path}.{field.alias}".removeprefix(".")
        inputs = tuple(item for item in field.metadata if isinstance(item, Inputs) and item.paths)
        only = next((item for item in field.metadata if isinstance(item, OnlyOn)), None)
        yield PoolField(below, (*parents, name), owner, inputs, only)
        for part in models_in(field.annotation) if name in _PARTS else ():
            yield from _fields(part, below, (*parents, name))


def field_by_input(cloud: CloudKind, change: Change | None = None) -> dict[str, str]:
    """Return the path of a pool's field by each of its inputs.

    Args:
        change: effect of a change of the inputs; None for all inputs.
    """
    return {
        path: field.path
        for field in pool_fields()
        for inputs in field.inputs
        if inputs.cloud is cloud
        for path in inputs.paths
        if change is None or change == change_of(cloud, path)
    }


@dataclass(frozen=True, slots=True)
class Row:
    """A field whose value is an input.

    Attributes:
        parents: names of the parts that it is in, from the pool on.
        path: the provider's path of the input.
        keys: the same under the SDK's names.
    """

    parents: tuple[str, ...]
    name: str
    owner: type[BaseModel]
    path: str
    keys: tuple[Key, ...]
    form: Form


@cache
def rows(cloud: CloudKind) -> tuple[Row, ...]:
    """Return the fields whose values are inputs of a cloud's node pools."""
    return tuple(_rows(Pool, cloud, ()))


def _rows(owner: type[BaseModel], cloud: CloudKind, parents: tuple[str, ...]) -> Iterator[Row]:
    for name, field in owner.model_fields.items():
        for item in field.metadata:
            if isinstance(item, Inputs) and item.cloud is cloud and item.form is not None:
                keys = tuple(python_name(key) if isinstance(key, str) else key for key in path_keys(item.at))
                yield Row(parents, name, owner, item.at, keys, item.form)
        for part in models_in(field.annotation) if name != "machine" else ():
            yield from _rows(part, cloud, (*parents, name))


def inputs_of(pool: ResolvedPool) -> dict[str, Any]:
    """Return the inputs that a pool's fields are, under the SDK's names, without omitted ones."""
    derived = pool.labels_and_taints
    on_nodes = {"labels": derived.labels, "taints": derived.taints}
    result: dict[str, Any] = {}
    for row in rows(pool.site.cloud):
        part: Any = pool
        for parent in row.parents:
            part = getattr(part, parent, None)
        value = getattr(part, row.name) if isinstance(part, row.owner) else None
        value = on_nodes.get(row.name, value)
        written = None if value is None else row.form.write(value)
        if written is not None:
            _set(result, row.keys, written)
    return result


def _set(inputs: Any, keys: tuple[Key, ...], value: object) -> None:
    for key, below in pairwise(keys):
        inputs = inputs[key] if isinstance(key, int) else inputs.setdefault(key, [{}] if below == 0 else {})
    inputs[keys[-1]] = value


def fields_of(cloud: CloudKind, value_at: Callable[[str], Any]) -> dict[str, Any]:
    """Return the values of a pool's fields by name, those of its parts as mappings; None for absent ones.

    Args:
        value_at: returns the input at a path; None if it is absent.
    """
    result: dict[str, Any] = {}
    for row in rows(cloud):
        part = result
        for parent in row.parents:
            part = part.setdefault(parent, {})
        part[row.name] = row.form.read(value_at(row.path))
    return result
