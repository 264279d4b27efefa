"""What a change of inputs means for a resource: nothing, an update, or a new resource."""

from collections.abc import Mapping
from typing import Any

from ebbtide.recording.values import UNKNOWN, Plain
from ebbtide_rehearsal.cloud.gcp.asked import last
from ebbtide_rehearsal.cloud.gcp.kind import Kind
from ebbtide_rehearsal.cloud.gcp.paths import differences, plain_path
from ebbtide_rehearsal.cloud.provider import Change, Properties


def change(kind: Kind, old: Properties, state: Properties, new: Properties) -> Change:
    """The top-level properties that differ, and those of them that need a new resource.

    Args:
        kind: the type of the resource.
        old: its inputs.
        state: its state, as the engine knows it.
        new: the inputs that it is to have.

    One whose name is given goes first: the bridge takes a name that it has not made itself for one that can
    be there only once (pulumi-terraform-bridge v3, pkg/tfbridge, `nameRequiresDeleteBeforeReplace`).
    """
    changed: dict[str, None] = {}
    replaces: dict[str, None] = {}
    before_all, after_all = _with_computed(kind, old, state, new)
    for path, before, after in differences(before_all, after_all):
        where = plain_path(path)
        if _same(kind, where, before, after):
            continue
        top = path.partition(".")[0].partition("[")[0]
        changed[top] = None
        if _needs_new(kind, where, before, after):
            replaces[top] = None
    keeps_name = bool(kind.autonamed) and old.get(kind.autonamed) == new.get(kind.autonamed)
    return Change(tuple(changed), tuple(replaces), delete_first=bool(replaces) and keeps_name)


def _with_computed(
    kind: Kind, old: Properties, state: Properties, new: Properties
) -> tuple[dict[str, Plain], dict[str, Plain]]:
    """Old and new inputs, with computed properties as Terraform plans them: omitted, they stay."""
    before, after = dict(old), dict(new)
    for name in kind.computed:
        if after.get(name) is None:
            before.pop(name, None)
            after.pop(name, None)
        elif name in state:
            before[name] = state[name]
    return before, after


def read_back(kind: Kind, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Plain]:
    """What would have to be asked for to get a state: what was asked for, with the values that the cloud has
    now where those are others."""
    return _objects_back(kind, dict(inputs), dict(state), "")


def _objects_back(
    kind: Kind, inputs: dict[str, Plain], state: dict[str, Plain], above: str
) -> dict[str, Plain]:
    keys = {*inputs, *state} if above in kind.maps else {*inputs}
    found: dict[str, Plain] = {}
    for key in sorted(keys):
        path = f"{above}.{key}" if above else key
        found[key] = _back(kind, inputs.get(key), state.get(key), path)
    return {key: item for key, item in found.items() if item is not None}


def _back(kind: Kind, inputs: Plain, state: Plain, path: str) -> Plain:
    if isinstance(inputs, dict) and isinstance(state, dict):
        return _objects_back(kind, inputs, state, path)
    if isinstance(inputs, list) and isinstance(state, list) and len(inputs) == len(state):
        return [_back(kind, one, other, path) for one, other in zip(inputs, state, strict=True)]
    return inputs if _same(kind, path, state, inputs) else state


def _same(kind: Kind, path: str, before: Any, after: Any) -> bool:
    if path in kind.same and isinstance(before, str) and isinstance(after, str):
        return last(before) == last(after)
    return kind.overlooked(path, before, after)


def _needs_new(kind: Kind, path: str, before: Any, after: Any) -> bool:
    if path in kind.replaced_if:
        return after is not UNKNOWN and kind.replaced_if[path](before, after)
    if path in kind.blocks:
        return True
    parts = path.split(".")
    above = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    # Below a block that comes or goes whole stands whatever is in it.
    inside = any(one.startswith(f"{path}.") for one in kind.replaces) and (before is None or after is None)
    return inside or not above.isdisjoint(kind.replaces)
