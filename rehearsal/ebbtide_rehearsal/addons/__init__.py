"""Add-ons in a rehearsal: the programs, charts and manifests of each, in the module of its name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ebbtide.declaration.model.addons import ADD_ONS

if TYPE_CHECKING:  # their modules read this one
    from ebbtide_rehearsal.addons.definition import Rehearsed


@cache
def rehearsed() -> "Mapping[str, Rehearsed]":
    """Return how a rehearsal gets each add-on that runs on the cluster, by name."""
    names = (name for name, add_on in ADD_ONS.items() if add_on.spec.namespace)
    return {name: import_module(f"{__name__}.{name}").REHEARSED for name in names}
