"""Instructions that set a property back which a refresh takes over, or an update cannot set.

For a Kubernetes object it is a command: the declared value conflicts with no field manager (Kubernetes docs,
server-side apply, conflicts). A property of a node pool or a cluster is declared; the update after the
refresh sets it then. What cannot be declared is set back in the cloud.
"""

import json
import shlex
from typing import Any, Final

from ebbtide.analysis.changes.property_path import plain_path
from ebbtide.analysis.recording.values import SECRET_TEXT
from ebbtide.declaration.model.rules.overridable import CLUSTERS, POOLS
from ebbtide.values.paths import is_within, path_keys

_TOOLS: Final = {"gcp": "`gcloud`", "azure-native": "`az`"}


def undo(type_: str, id_: str, path: str, value: Any) -> str:
    """Return how to set a property back, as a command or the end of a sentence.

    Args:
        type_: type token of the resource.
        id_: its id.
        path: path of the property.
        value: its value in the state; None if it was absent there.
    """
    keys, old = path_keys(path), json.dumps(value, ensure_ascii=False)
    back = f"set it back to {old}" if value is not None else "remove it"
    is_plain = SECRET_TEXT not in old and all(isinstance(key, str) for key in keys)
    nested = value
    for key in reversed(keys):
        nested = {key: nested}
    document = json.dumps(nested, ensure_ascii=False)
    package = type_.partition(":")[0]
    if package == "kubernetes":
        namespace, _, name = id_.rpartition("/")
        named = f"{type_.rpartition(':')[2].removesuffix('Patch').lower()} {name}"
        within = f" --namespace {namespace}" if namespace else ""
        if not is_plain:
            return f"{back}, with `kubectl edit {named}{within}`"
        return f"kubectl patch {named}{within} --type merge --patch {shlex.quote(document)}"
    if is_plain and value is not None and (place := _place(type_, plain_path(path), document)):
        return f"declare {place}, and the update after the refresh sets it back to {old}"
    tools = f", or with {_TOOLS[package]}" if package in _TOOLS else ""
    return f"lost by a refresh, and nothing declares it: {back} before, in the console of the cloud{tools}"


def _place(type_: str, path: str, document: str) -> str:
    """Return what declares an input of a node pool or a cluster: its field, or else an override; empty for
    other resources."""
    for tables, above in ((POOLS, ""), (CLUSTERS, "cloud.")):
        for known in tables.values():
            if known.token == type_:
                fields = (
                    field
                    for derived, field in known.derived.items()
                    if is_within(path, derived) or is_within(derived, path)
                )
                return f"`{next(fields, f'{above}overrides: {document}')}`"
    return ""
