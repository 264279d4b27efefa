"""pulumi-kubernetes: which differences need a new object.

Source: provider/pkg/provider/diff.go and provider.go (`DiffConfig`, `Diff`) at 94977969, 2026-07.
"""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide.analysis.recording.values import at
from ebbtide.declaration.providers.constraints import Constraints, constraints_of

_ANY: Final = "kubernetes:*"
_CLUSTER: Final = ("kubeconfig", "context", "cluster")


def is_same(path: str, before: Any, after: Any) -> bool:
    """Return whether the provider ignores a difference: it fills in the namespace `default`."""
    return path == "metadata.namespace" and {before, after} == {None, "default"}


def needs_new(token: str, path: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a difference needs a new object.

    Args:
        token: the object's type.
        path: path of the property, without indices.
        settings: the inputs of the object's provider.
    """
    constraints = constraints_of(token)
    if constraints.is_replaced(path) or constraints_of(_ANY).is_replaced(path):
        return True
    setting = _setting(constraints, path)
    return bool(setting) and str(settings.get(setting, False)).lower() != "true"


def _setting(constraints: Constraints, path: str) -> str:
    """Return the provider's input that makes a property mutable; empty if there is none."""
    unless = constraints.replaces_unless
    return next((unless[known] for known in unless if f"{path}.".startswith(f"{known}.")), "")


def provider_needs_new(path: str) -> bool:
    """Return whether a difference of a provider's inputs means another cluster, with other objects."""
    return path.partition(".")[0] in _CLUSTER


def keeps_name(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether an object is deleted before its replacement is created: both have the same name."""
    before, after = dict(old), dict(new)
    paths = ("metadata.name", "metadata.namespace")
    return bool(at(after, paths[0])) and all(at(before, path) == at(after, path) for path in paths)
