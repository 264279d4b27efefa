"""Moving an add-on into a namespace of its own."""

from typing import Any, cast

from .objects import Object, Patch, is_, updated


def moved(old: str, new: str, without_labels: tuple[str, ...] = ()) -> Patch:
    """Objects stand in another namespace, and whatever names the old one names the new.

    Two add-ons of one project bring the same namespace: made twice, it would be removed with the first that
    goes, and take the other along.

    Args:
        old: upstream's namespace.
        new: ours.
        without_labels: labels that the namespace does not take along.
    """

    def patch(manifest: Object) -> Object:
        changed = _elsewhere(manifest, old, new)
        if is_(changed, "Namespace", old):
            labels = changed["metadata"].get("labels", {})
            remaining = {key: value for key, value in labels.items() if key not in without_labels}
            return updated(changed, ("metadata",), {**changed["metadata"], "name": new, "labels": remaining})
        return changed

    return patch


def _elsewhere(value: Any, old: str, new: str) -> Any:
    """Every `namespace` that is the old one, and every service account written out in an expression."""
    match value:
        case dict():
            items = cast("Object", value)
            return {
                key: new if key == "namespace" and item == old else _elsewhere(item, old, new)
                for key, item in items.items()
            }
        case list():
            return [_elsewhere(item, old, new) for item in cast("list[Any]", value)]
        case str():
            return value.replace(f"system:serviceaccount:{old}:", f"system:serviceaccount:{new}:")
        case _:
            return value
