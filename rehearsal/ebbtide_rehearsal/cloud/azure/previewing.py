"""Outputs of azure-native 3.29 in a preview (`PreviewOutputs`): inputs, and unknown values of Azure."""

from collections.abc import Mapping
from typing import Any, cast

from ebbtide.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud.azure.ids import names
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.provider import Properties

_STAYS = ("name", "location")


def previewed(kind: ResourceKind, inputs: Properties, old: Properties | None = None) -> dict[str, Any]:
    """Return the outputs that a preview knows; the SDK treats missing ones as unknown.

    Args:
        kind: the resource's type.
        inputs: the requested inputs.
        old: its state; None if it is to be created.
    """
    state: dict[str, Any] = {key: value for key, value in inputs.items() if key not in names(kind.path)}
    for path in kind.unknown:
        state = _unknown(state, path.split("."))
    if old is not None:
        state |= {name: old[name] for name in _STAYS if name in old}
    return state


def _unknown(state: Mapping[str, Any], steps: list[str]) -> dict[str, Any]:
    """Return the state with the value at a path unknown, if its parent exists."""
    name, *rest = steps
    if not rest:
        return {**state, name: UNKNOWN}
    inner = state.get(name)
    if not isinstance(inner, Mapping):
        return dict(state)
    return {**state, name: _unknown(cast("Mapping[str, Any]", inner), rest)}
