"""Edits by hand of a deployed stack's resources on the fake clouds and in a fake API server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ebbtide.analysis.changes.property_path import merged
from ebbtide_rehearsal.cloud.provider import Call, Properties, Read
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.engine.any_objects import AnyObjects

GONE: Final = "gone"
"""The edit that deletes a resource."""
Edit = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | str
"""The changed part of a resource's state, nested; a function of the state; or `GONE`."""


@dataclass
class EditedObjects(AnyObjects):
    """A Kubernetes provider whose objects are edited by a field manager.

    Attributes:
        edits: the field manager and the edit, by the logical name of the object.
    """

    edits: dict[str, tuple[str, Edit]] = field(default_factory=dict[str, tuple[str, Edit]])

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """See `Provider.read`."""
        manager, edit = self.edits.get(call.name, ("", {}))
        if edit == GONE:
            return None
        if not edit:
            return Read(identity, call.inputs, known)
        change = _change(edit, known)
        metadata: Any = known.get("metadata") or {}
        fields = {"manager": manager, "operation": "Update", "fieldsV1": _fields(change)}
        managed = {"metadata": {**metadata, "managedFields": [fields]}}
        return Read(identity, merged(call.inputs, change), merged(merged(known, managed), change))


def _change(edit: Edit, state: Any) -> Mapping[str, Any]:
    if isinstance(edit, str):
        raise TypeError(edit)
    return edit(state) if callable(edit) else edit


def _fields(change: Any) -> dict[str, Any]:
    """Return the fields of a change in the form of `fieldsV1`; a list is atomic."""
    if not isinstance(change, dict):
        return {}
    return {f"f:{key}": _fields(item) for key, item in change.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON


def edit_resource(store: Store, identity: str, edit: Edit) -> None:
    """Edit a resource of a cloud.

    Args:
        identity: the end of its id.
        edit: the edit.
    """
    (resource,) = [
        item
        for item in store.resources()
        if item.cloud in ("gcp", "azure-native") and item.id.endswith(identity)
    ]
    if edit == GONE:
        store.remove(resource.cloud, resource.id)
    else:
        store.put(resource.having(**merged(resource.state, _change(edit, resource.state))))
