"""Ids in Azure Resource Manager's form, which are case-insensitive."""

import re
from collections.abc import Mapping
from typing import Any, Final

from ebbtide.analysis.providers.azure import names
from ebbtide.analysis.recording.assumed_azure import GROUP

__all__ = ["GROUP", "azure_type", "group_of", "identity", "last", "names", "parts", "same", "within"]

_PLACE: Final = re.compile(r"\{(\w+)\}")


def identity(path: str, subscription: str, inputs: Mapping[str, Any]) -> str:
    """Return the id of the resource with these inputs."""
    return path.format_map({**inputs, "subscriptionId": subscription})


def parts(path: str, id_: str) -> dict[str, str]:
    """Return the inputs in an id; empty if it does not match the path."""
    pattern = "".join(
        f"(?P<{piece}>.+)" if index % 2 else re.escape(piece)
        for index, piece in enumerate(_PLACE.split(path))
    )
    match = re.fullmatch(pattern, id_, re.IGNORECASE)
    if match is None:
        return {}
    return {name: value for name, value in match.groupdict().items() if name != "subscriptionId"}


def azure_type(path: str) -> str:
    """Return Azure's name of the type, such as `Microsoft.Network/virtualNetworks/subnets`."""
    words = path.rpartition("/providers/")[2].split("/")
    return "/".join([words[0], *words[1::2]])


def same(identity: str, other: str) -> bool:
    """Return whether two ids name the same resource."""
    return identity.lower() == other.lower()


def within(id_: str, scope: str) -> bool:
    """Return whether a resource is a scope, or below it."""
    return same(id_, scope) or id_.lower().startswith(f"{scope.lower()}/")


def group_of(id_: str) -> str:
    """Return the id of a resource's resource group; empty for none."""
    match = re.match(r"/subscriptions/[^/]+/resourceGroups/[^/]+", id_, re.IGNORECASE)
    return match[0] if match else ""


def last(id_: str) -> str:
    """Return the last segment of an id."""
    return id_.rpartition("/")[2]
