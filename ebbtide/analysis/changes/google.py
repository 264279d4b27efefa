"""pulumi-gcp's bridge to Terraform: which differences are changes, and which need a new resource.

Sources: the tables of `constraints`; pulumi-terraform-bridge v3, pkg/tfbridge.
"""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from ebbtide.analysis.recording.values import UNKNOWN
from ebbtide.declaration.providers.constraints import constraints_of


def is_same(token: str, path: str, before: Any, after: Any) -> bool:
    """Return whether Terraform ignores a difference: it treats empty as absent, has `DiffSuppressFunc`s, and
    compares a new value with its state, which has false, zero or the cloud's value for an absent input.

    Args:
        token: the resource's type.
        path: path of the property, without indices.
        before: the old value; None if absent.
        after: the new value; None if absent.
    """
    if before in (None, {}, []) and after in (None, {}, []):
        return True
    constraints = constraints_of(token)
    zero = after in (False, 0) and path not in constraints.computed
    if before is None and (zero or after == constraints.fills.get(path)):
        return True
    same = constraints.same
    match same.get(path) or same.get(path.rpartition(".")[0], ""):
        case "CompareSelfLinkOrResourceName" | "CompareSelfLinkRelativePaths":
            return isinstance(before, str) and isinstance(after, str) and _last(before) == _last(after)
        case "CaseDiffSuppress" | "iamMemberCaseDiffSuppress":
            return str(before).lower() == str(after).lower()
        case "containerNodePoolResourceLabelsDiffSuppress":
            # GKE's own billing labels.
            return path.rpartition(".")[2].startswith("goog-gke") and after is None
        case _:
            return False


def is_kept(token: str, path: str, after: Any) -> bool:
    """Return whether a property keeps the cloud's value, since it is computed and omitted."""
    return after in (None, {}, []) and path in constraints_of(token).computed


def needs_new(token: str, path: str, before: Any, after: Any) -> bool:
    """Return whether a difference needs a new resource; arguments as in `is_same`."""
    if (token, path) in _REPLACED_IF:
        return after is not UNKNOWN and _REPLACED_IF[token, path](before, after)
    constraints = constraints_of(token)
    whole = after if before is None else before if after is None else None
    return constraints.is_replaced(path) or any(map(constraints.is_replaced, _below(path, whole)))


def _below(path: str, value: Any) -> Iterator[str]:
    """Yield the paths of the properties that an added or removed value has, without indices.

    Source: pulumi-terraform-bridge v3, pkg/tfbridge/detailed_diff.go, propertyValueTriggersReplacement.
    """
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            yield f"{path}.{key}"
            yield from _below(f"{path}.{key}", item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _below(path, item)


def keeps_name(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether a resource is deleted before its replacement is created.

    The bridge assumes that a name that it has not generated must be unique
    (`nameRequiresDeleteBeforeReplace`).
    """
    return old.get("name") is not None and old.get("name") == new.get("name")


def _shrinks(old: Any, new: Any) -> bool:
    """Return whether a range is changed other than by expansion (Terraform's `IsShrinkageIpCidr`)."""
    if not isinstance(old, str) or not isinstance(new, str):
        return True
    before, after = ipaddress.IPv4Network(old, strict=False), ipaddress.IPv4Network(new, strict=False)
    return not before.subnet_of(after)


def _last(reference: str) -> str:
    """Return the name at the end of an id or link."""
    return reference.rpartition("/")[2]


_REPLACED_IF: Final[Mapping[tuple[str, str], Callable[[Any, Any], bool]]] = {
    ("gcp:compute/subnetwork:Subnetwork", "ipCidrRange"): _shrinks,
}
"""Properties for which only some changes need a new resource."""
