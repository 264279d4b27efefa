"""Who owns which fields of an object: server-side apply's managed fields.

Source: pulumi-kubernetes 4.32, provider/pkg/await/await.go (`fixCSAFieldManagers`, `handleSSAIgnoreFields`,
`patchForce`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ebbtide_rehearsal.cloud.kubernetes.objects import (
    MISSING,
    Object,
    Path,
    annotation,
    at,
    metadata,
    objects_at,
)

MAKER: Final = "pulumi-kubernetes"
"""The manager of what an object is made with; the fields go over to a manager of the resource's own with its
first change."""

FORCE: Final = "pulumi.com/patchForce"

_TAKEN_OVER: Final = frozenset(
    {
        ("kubectl", "Apply"),
        ("kubectl", "Update"),
        ("before-first-apply", "Update"),
        (MAKER, "Update"),
        ("pulumi-kubernetes.exe", "Update"),
        ("pulumi-resource-kubernetes", "Update"),
    }
)


def forced(inputs: Object, live: Object | None, *, always: bool, preview: bool) -> bool:
    """Whether fields that others own are taken from them; else that is refused.

    Args:
        inputs: what is asked for; an annotation may say so.
        live: the object as it is; None where it is being made.
        always: the provider's `enablePatchForce`.
        preview: whether nothing is done yet: then fields that were made with the object count as the
            resource's own, as they will when something is done.
    """
    if always or annotation(inputs, FORCE) == "true":
        return True
    if live is None:
        return preview
    made = any(_who(entry) == (MAKER, "Update") for entry in _entries(live))
    return (preview and made) or not _entries(live)


def taken_over(live: Object, manager: str) -> list[Object] | None:
    """A JSON patch by which a manager owns what the object was made with, or kubectl applied to it; None
    where there is nothing of that.
    """
    entries = _entries(live)
    taken = [entry for entry in entries if _who(entry) in _TAKEN_OVER and not entry.get("subresource")]
    if not taken:
        return None
    ours = [entry for entry in entries if _who(entry) == (manager, "Apply")]
    merged: Object = {}
    for entry in (*ours, *taken):
        merged = _merged(merged, entry.get("fieldsV1") or {})
    owner = {**taken[0], "manager": manager, "operation": "Apply", "fieldsV1": merged}
    rest = [entry for entry in entries if entry not in taken and entry not in ours]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [*rest, owner]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata(live)["resourceVersion"]},
    ]


def without_ignored(inputs: Object, live: Object, manager: str, ignored: Sequence[str]) -> Object:
    """What is asked for without those fields, of the ones whose changes the program ignores, that are
    others'; the rest of them as they are."""
    for path in ignored:
        steps = tuple(path.split("."))
        field = tuple(f"f:{step}" for step in steps)
        owners = {entry.get("manager") for entry in _entries(live) if _owns(entry, field)}
        if owners and manager not in owners:
            inputs = _set(inputs, steps, MISSING)
        elif (value := at(live, *steps)) is not MISSING:
            inputs = _set(inputs, steps, value)
    return inputs


def _entries(live: Object) -> list[Object]:
    return objects_at(live, "metadata", "managedFields")


def _who(entry: Object) -> tuple[Any, Any]:
    return entry.get("manager"), entry.get("operation")


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Object:
    """Two sets of fields in one."""
    keys = list(dict.fromkeys([*one, *other]))
    return {key: _merged(one.get(key) or {}, other.get(key) or {}) for key in keys}


def _owns(entry: Object, field: Path) -> bool:
    return at(entry, "fieldsV1", *field) is not MISSING


def _set(value: Object, path: tuple[str, ...], new: Any) -> Object:
    """A copy with another value at a path, or none; what is not there on the way is not made."""
    head, *rest = path
    if not rest:
        kept = {key: item for key, item in value.items() if key != head}
        return kept if new is MISSING else {**kept, head: new}
    inner = value.get(head)
    return (
        {**value, head: _set(cast("Object", inner), tuple(rest), new)} if isinstance(inner, dict) else value
    )
