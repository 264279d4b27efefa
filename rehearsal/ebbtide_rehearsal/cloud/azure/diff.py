"""azure-native 3.29: the meaning of new inputs for a resource.

Source: pulumi-azure-native, provider/pkg/provider/diff.go and provider.go. Inputs are compared with inputs,
whatever the resource's state is.
"""

from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.ids import names
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.core import diff
from ebbtide_rehearsal.cloud.core.property_path import plain_path, top_level
from ebbtide_rehearsal.cloud.provider import Change, Properties, Read

RANDOMLY_NAMED: Final = "__createBeforeDelete"
"""azure-native's note that it chose the name, so that the replacement can be created first."""


def change(kind: ResourceKind, old: Read, new: Properties) -> Change:
    """Return the meaning of new inputs of a resource."""
    in_path = names(kind.path)

    def needs_new(path: str, before: Any, after: Any) -> bool:
        if before is None and old.state.get(path) == after:
            return False
        return top_level(path) in in_path or diff.is_replaced(kind.constraints, plain_path(path))

    return diff.change(
        old.inputs,
        new,
        is_same=_is_same,
        needs_new=needs_new,
        keeps_name=old.inputs.get(RANDOMLY_NAMED) is not True,
    )


def same_region(name: str, other: str) -> bool:
    """Report if two names are of one region: `West US 2` is `westus2`."""
    return name.replace(" ", "").lower() == other.replace(" ", "").lower()


def _is_same(path: str, before: Any, after: Any) -> bool:
    if path == "location" and isinstance(before, str) and isinstance(after, str):
        return same_region(before, after)
    return path == RANDOMLY_NAMED
