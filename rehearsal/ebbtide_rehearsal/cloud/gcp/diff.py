"""Pulumi's bridge to Terraform: the meaning of new inputs, and the inputs of a resource that was read."""

from collections.abc import Mapping
from typing import Any

from ebbtide.recording.values import UNKNOWN, Plain
from ebbtide_rehearsal.cloud.core import diff
from ebbtide_rehearsal.cloud.core.property_path import plain_path
from ebbtide_rehearsal.cloud.gcp.request import last
from ebbtide_rehearsal.cloud.gcp.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.provider import Change, Properties


def change(kind: ResourceKind, old: Properties, state: Properties, new: Properties) -> Change:
    """Return the meaning of new inputs for a resource.

    One whose name is given is deleted first: the bridge takes a name that it has not made itself for one that
    can exist only once (pulumi-terraform-bridge v3, pkg/tfbridge, `nameRequiresDeleteBeforeReplace`).

    Args:
        kind: the type of the resource.
        old: its inputs.
        state: its state, as the engine knows it.
        new: the inputs that it is to have.
    """
    before = {
        **old,
        **{name: state[name] for name in kind.constraints.computed if _is_scalar(state.get(name))},
    }
    return diff.change(
        before,
        new,
        is_same=lambda path, before, after: (
            _is_same(kind, plain_path(path), before, after) or _is_kept(kind, plain_path(path), after)
        ),
        needs_new=lambda path, before, after: _needs_new(kind, plain_path(path), before, after),
        keeps_name=bool(kind.autonamed) and old.get(kind.autonamed) == new.get(kind.autonamed),
    )


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, dict)


def _is_kept(kind: ResourceKind, path: str, after: Any) -> bool:
    """Report if a property keeps the cloud's value, since it is computed and omitted."""
    return after in (None, {}, []) and path in kind.constraints.computed


def read_back(kind: ResourceKind, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Plain]:
    """Return the inputs of a resource that was read: with the cloud's values where those differ."""
    return _objects_back(kind, dict(inputs), dict(state), "")


def _objects_back(
    kind: ResourceKind, inputs: dict[str, Plain], state: dict[str, Plain], above: str
) -> dict[str, Plain]:
    keys = {*inputs, *state} if above in kind.maps else {*inputs}
    result: dict[str, Plain] = {}
    for key in sorted(keys):
        path = f"{above}.{key}" if above else key
        result[key] = _back(kind, inputs.get(key), state.get(key), path)
    return {key: item for key, item in result.items() if item is not None}


def _back(kind: ResourceKind, inputs: Plain, state: Plain, path: str) -> Plain:
    if isinstance(inputs, dict) and isinstance(state, dict):
        return _objects_back(kind, inputs, state, path)
    if isinstance(inputs, list) and isinstance(state, list) and len(inputs) == len(state):
        return [_back(kind, before, after, path) for before, after in zip(inputs, state, strict=True)]
    return inputs if _is_same(kind, path, state, inputs) else state


def _is_same(kind: ResourceKind, path: str, before: Any, after: Any) -> bool:
    """Report if Terraform overlooks a difference: empty is absent to it, and it has `DiffSuppressFunc`s."""
    if before in (None, {}, []) and after in (None, {}, []):
        return True
    match kind.constraints.same.get(path) or kind.constraints.same.get(path.rpartition(".")[0], ""):
        case "CompareSelfLinkOrResourceName" | "CompareSelfLinkRelativePaths":
            return isinstance(before, str) and isinstance(after, str) and last(before) == last(after)
        case "CaseDiffSuppress" | "iamMemberCaseDiffSuppress":
            return str(before).lower() == str(after).lower()
        case "containerNodePoolResourceLabelsDiffSuppress":
            # GKE's own labels of the bill.
            return path.rpartition(".")[2].startswith("goog-gke") and after is None
        case _:
            return False


def _needs_new(kind: ResourceKind, path: str, before: Any, after: Any) -> bool:
    if path in kind.replaced_if:
        return after is not UNKNOWN and kind.replaced_if[path](before, after)
    # All that is in an object that comes or goes whole comes or goes with it.
    is_whole = before is None or after is None
    inside = is_whole and any(before.startswith(f"{path}.") for before in kind.constraints.replaces)
    return inside or diff.is_replaced(kind.constraints, path)
