"""Outputs of azure-native 3.29 in a preview (`PreviewOutputs`): the inputs, with what Azure adds unknown."""

from collections.abc import Mapping
from typing import Any, cast

from ebbtide.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud.azure.ids import names
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.provider import Properties

_STAYS = ("name", "location")


def previewed(kind: ResourceKind, inputs: Properties, old: Properties | None = None) -> dict[str, Any]:
    """The outputs that a preview can know; what is not among them the SDK takes to be unknown.

    Args:
        kind: the resource's type.
        inputs: what is asked for.
        old: its state; None where it is to be made.
    """
    state: dict[str, Any] = {key: value for key, value in inputs.items() if key not in names(kind.path)}
    for path in kind.unknown:
        state = _unknown(state, path.split("."))
    if old is not None:
        state |= {name: old[name] for name in _STAYS if name in old}
    return state


def _unknown(state: Mapping[str, Any], steps: list[str]) -> dict[str, Any]:
    """The same with what stands at a path unknown, where what it is in is there."""
    name, *rest = steps
    if not rest:
        return {**state, name: UNKNOWN}
    inner = state.get(name)
    if not isinstance(inner, Mapping):
        return dict(state)
    return {**state, name: _unknown(cast("Mapping[str, Any]", inner), rest)}
