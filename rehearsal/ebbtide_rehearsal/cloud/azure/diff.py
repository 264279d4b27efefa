"""azure-native 3.29: effect of changed inputs on a resource, by the same rules as the review."""

from typing import Any

from ebbtide.providers import azure
from ebbtide.providers.azure import RANDOMLY_NAMED
from ebbtide.providers.property_path import plain_path
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.core import diff
from ebbtide_rehearsal.cloud.provider import DiffResult, Properties, Read


def change(kind: ResourceKind, old: Read, new: Properties) -> DiffResult:
    """Return the effect of changed inputs on a resource."""

    def needs_new(path: str, before: Any, after: Any) -> bool:
        if before is None and old.state.get(path) == after:
            return False
        return azure.needs_new(kind.type, plain_path(path))

    return diff.change(
        old.inputs,
        new,
        is_same=azure.is_same,
        needs_new=needs_new,
        keeps_name=old.inputs.get(RANDOMLY_NAMED) is not True,
    )
