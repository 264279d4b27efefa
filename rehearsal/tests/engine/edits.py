"""Edits by hand of a deployed stack's resources on the fake clouds and in a fake API server."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from ebbtide.values.paths import path_keys
from ebbtide_rehearsal.cloud.provider import Call, Properties, Read
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.engine.any_objects import AnyObjects

Edit = Mapping[str, Any] | None
"""New values by their paths in a resource's state; None deletes the resource."""


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
        if edit is None:
            return None
        if not edit:
            return Read(identity, call.inputs, known)
        fields = {"manager": manager, "operation": "Update", "fieldsV1": _fields(edit)}
        return Read(
            identity, _edited(call.inputs, edit), _edited(known, {**edit, "metadata.managedFields": [fields]})
        )


def _edited(state: Mapping[str, Any], edit: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with new values; the index after the last item of a list appends."""
    result = copy.deepcopy(dict(state))
    for path, value in edit.items():
        inside: Any = result
        *above, last = path_keys(path)
        for key in above:
            inside = inside[key] if isinstance(key, int) else inside.setdefault(key, {})
        inside[slice(last, last + 1) if isinstance(last, int) else last] = (
            [value] if isinstance(last, int) else value
        )
    return result


def _fields(edit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an edit in the form of `fieldsV1`; a list is atomic."""
    fields: dict[str, Any] = {}
    for path in edit:
        inside = fields
        for key in takewhile(lambda key: isinstance(key, str), path_keys(path)):
            inside = inside.setdefault(f"f:{key}", {})
    return fields


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
    if edit is None:
        store.remove(resource.cloud, resource.id)
    else:
        store.put(resource.having(**_edited(resource.state, edit)))
