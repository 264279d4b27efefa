"""pulumi-kubernetes: which differences it ignores, and which need a new object.

Source: provider/pkg/provider/diff.go and provider.go (`DiffConfig`, `Diff`, `normalizeInputs`) at 94977969,
2026-07.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from ebbtide.analysis.recording.values import Plain, Secret, at
from ebbtide.declaration.providers.constraints import Constraints, constraints_of
from ebbtide.values import quantities

_ANY: Final = "kubernetes:*"
_CLUSTER: Final = ("kubeconfig", "context", "cluster")
_BUILT_IN: Final = re.compile(r"kubernetes:([a-z0-9]+|(?!.*\.x-k8s\.io/).*\.k8s\.io)/v[a-z0-9]+:\w+")
_QUANTITIES: Final = re.compile(r"(capacity|hard|limits|requests|sizeLimit)(\.|$)")


def normalized(token: str, inputs: dict[str, Plain]) -> dict[str, Plain]:
    """Return inputs as the provider writes them into the state: converted to the API's types and back.

    These omit empty lists; custom resources stay as written. The text of a Secret is in its `data`, and a
    volume of no storage class omits the class.
    """
    if not _BUILT_IN.fullmatch(token):
        return inputs
    result = {key: _without_empty_lists(value) for key, value in inputs.items() if value != []}
    spec = result.get("spec")
    if token.endswith(":PersistentVolume") and isinstance(spec, dict) and spec.get("storageClassName") == "":
        result["spec"] = {key: value for key, value in spec.items() if key != "storageClassName"}
    if token.endswith(":Secret") and "stringData" in result:
        result["data"] = Secret({**_texts(result.get("data")), **_texts(result.pop("stringData"))})
    return result


def _without_empty_lists(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {key: _without_empty_lists(item) for key, item in value.items() if item != []}
    if isinstance(value, list):
        return [_without_empty_lists(item) for item in value]
    return value


def _texts(value: Plain) -> dict[str, Plain]:
    texts = value.value if isinstance(value, Secret) else value
    return texts if isinstance(texts, dict) else {}


def is_same(path: str, before: Any, after: Any) -> bool:
    """Return whether the provider ignores a difference: it fills in the namespace `default`, and writes
    quantities in their canonical form."""
    if path == "metadata.namespace":
        return {before, after} == {None, "default"}
    if not _QUANTITIES.search(path) or not isinstance(before, str) or not isinstance(after, str):
        return False
    try:
        return quantities.parse(before) == quantities.parse(after)
    except ValueError:
        return False


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
