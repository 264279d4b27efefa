"""Move an add-on into a separate namespace."""

from typing import Any, cast

from .objects import Object, Patch, is_, updated


def with_namespace(old: str, new: str, without_labels: tuple[str, ...] = ()) -> Patch:
    """Move objects, and references to them, into another namespace.

    Two add-ons of one project use the same namespace: declared by both, it would be deleted with the first,
    along with the other add-on.

    Args:
        old: upstream's namespace.
        new: Ebbtide's namespace.
        without_labels: labels that are not copied to the new namespace.
    """

    def patch(manifest: Object) -> Object:
        changed = _replaced(manifest, old, new)
        if is_(changed, "Namespace", old):
            labels = changed["metadata"].get("labels", {})
            remaining = {key: value for key, value in labels.items() if key not in without_labels}
            return updated(changed, ("metadata",), {**changed["metadata"], "name": new, "labels": remaining})
        return changed

    return patch


def _replaced(value: Any, old: str, new: str) -> Any:
    """Replace the old namespace in each `namespace` field, and in service accounts within expressions."""
    match value:
        case dict():
            items = cast("Object", value)
            return {
                key: new if key == "namespace" and item == old else _replaced(item, old, new)
                for key, item in items.items()
            }
        case list():
            return [_replaced(item, old, new) for item in cast("list[Any]", value)]
        case str():
            return value.replace(f"system:serviceaccount:{old}:", f"system:serviceaccount:{new}:")
        case _:
            return value
