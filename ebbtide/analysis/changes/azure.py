"""azure-native 3.29: which differences are changes, and which need a new resource.

Source: pulumi-azure-native, provider/pkg/provider/diff.go and provider.go. The provider compares inputs with
inputs, regardless of the resource's state.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from ebbtide.analysis.changes.property_path import top_level
from ebbtide.analysis.recording.assumed_azure import RESOURCES
from ebbtide.declaration.catalog.clouds import azure_region
from ebbtide.declaration.providers.constraints import constraints_of

RANDOMLY_NAMED: Final = "__createBeforeDelete"
"""Input in which azure-native notes that it chose the name, so that the replacement can be created first."""

API_VERSION: Final = "azureApiVersion"
"""Input in which azure-native notes the version of the API that it calls."""
_PLACE: Final = re.compile(r"\{(\w+)")


def names(id_form: str) -> tuple[str, ...]:
    """Return the inputs in the form of an id, without the subscription, which belongs to the provider."""
    return tuple(name for name in _PLACE.findall(id_form) if name != "subscriptionId")


def filled_in(token: str, inputs: Mapping[str, Any]) -> frozenset[str]:
    """Return the inputs that azure-native adds: an API version, a random name, and a region.

    Source: provider/pkg/provider/provider.go (`applyDefaults`).
    """
    if inputs.get(RANDOMLY_NAMED) is not True or token not in RESOURCES:
        return frozenset({API_VERSION})
    return frozenset({API_VERSION, "location", names(RESOURCES[token].id)[-1]})


def is_same(path: str, before: Any, after: Any) -> bool:
    """Return whether azure-native ignores a difference at a path."""
    if path == "location" and isinstance(before, str) and isinstance(after, str):
        return azure_region(before) == azure_region(after)  # `West US 2` is `westus2`
    return path == RANDOMLY_NAMED


def needs_new(token: str, path: str) -> bool:
    """Return whether a difference at a path without indices needs a new resource: it is part of the id, or in
    the table."""
    in_id = names(RESOURCES[token].id) if token in RESOURCES else ()
    return top_level(path) in in_id or constraints_of(token).is_replaced(path)
