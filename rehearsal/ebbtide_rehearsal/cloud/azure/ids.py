"""Ids in Azure Resource Manager's form. Their letters' case says nothing."""

import re
from collections.abc import Mapping
from typing import Any, Final

from ebbtide.recording.answers_azure import GROUP

__all__ = ["GROUP", "azure_type", "group_of", "identity", "last", "names", "parts", "same", "within"]

_PLACE: Final = re.compile(r"\{(\w+)\}")


def names(path: str) -> tuple[str, ...]:
    """The inputs that stand in a path, without the subscription, which is the provider's."""
    return tuple(name for name in _PLACE.findall(path) if name != "subscriptionId")


def identity(path: str, subscription: str, inputs: Mapping[str, Any]) -> str:
    """The id of what these inputs ask for."""
    return path.format_map({**inputs, "subscriptionId": subscription})


def parts(path: str, found: str) -> dict[str, str]:
    """The inputs in an id; empty where it is not of the path's form."""
    pattern = "".join(
        f"(?P<{piece}>.+)" if index % 2 else re.escape(piece)
        for index, piece in enumerate(_PLACE.split(path))
    )
    match = re.fullmatch(pattern, found, re.IGNORECASE)
    if match is None:
        return {}
    return {name: value for name, value in match.groupdict().items() if name != "subscriptionId"}


def azure_type(path: str) -> str:
    """The type's name with Azure, such as `Microsoft.Network/virtualNetworks/subnets`."""
    words = path.rpartition("/providers/")[2].split("/")
    return "/".join([words[0], *words[1::2]])


def same(one: str, other: str) -> bool:
    """Whether two ids are of the same thing."""
    return one.lower() == other.lower()


def within(found: str, scope: str) -> bool:
    """Whether something is a scope, or below it."""
    return same(found, scope) or found.lower().startswith(f"{scope.lower()}/")


def group_of(found: str) -> str:
    """The id of the resource group that something is in; empty for none."""
    match = re.match(r"/subscriptions/[^/]+/resourceGroups/[^/]+", found, re.IGNORECASE)
    return match[0] if match else ""


def last(found: str) -> str:
    """The name at an id's end."""
    return found.rpartition("/")[2]
