"""Fields of a pool with their metadata: provider inputs, and the only cloud that has them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.provider_inputs import Change, Inputs, OnlyOn
from ebbtide.declaration.model.shape.error_locations import models_in

_PARTS = ("accelerator", "capacity", "disk")
"""Fields whose own fields have metadata."""


@dataclass(frozen=True, slots=True)
class PoolField:
    """A field of a pool, or of a part of it.

    Attributes:
        path: path in the declaration, below the pool; for the `kind` of a part, the part's.
        names: its names in Python, from the pool on.
        owner: the part that has it.
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
        inputs = tuple(item for item in field.metadata if isinstance(item, Inputs))
        only = next((item for item in field.metadata if isinstance(item, OnlyOn)), None)
        yield PoolField(below, (*parents, name), owner, inputs, only)
        for part in models_in(field.annotation) if name in _PARTS else ():
            yield from _fields(part, below, (*parents, name))


def field_by_input(cloud: CloudKind, change: Change | None = None) -> dict[str, str]:
    """Return the path of a pool's field by each of its inputs.

    Args:
        cloud: the cloud of the inputs.
        change: effect of a change of the inputs; None for all inputs.
    """
    return {
        path: field.path
        for field in pool_fields()
        for inputs in field.inputs
        if inputs.cloud is cloud and change in (None, inputs.change)
        for path in inputs.paths
    }
