"""Meaning of new inputs for a resource: nothing, an update, or a replacement."""

from collections.abc import Callable, Mapping
from typing import Any

from ebbtide.providers.property_path import differences, top_level
from ebbtide.recording.values import Plain
from ebbtide_rehearsal.cloud.provider import DiffResult


def change(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    is_same: Callable[[str, Plain, Plain], bool],
    needs_new: Callable[[str, Plain, Plain], bool],
    keeps_name: bool,
) -> DiffResult:
    """Return the top-level properties that differ, and those of them that need a new resource.

    Args:
        old: inputs, or what is compared with them.
        new: the inputs that it is to have.
        is_same: tells of a path and both values whether the provider overlooks the difference.
        needs_new: tells whether it needs a new resource.
        keeps_name: both cannot exist at once, so that the old one is deleted first.
    """
    changed: dict[str, bool] = {}
    for path, before, after in differences(dict(old), dict(new)):
        if not is_same(path, before, after):
            top = top_level(path)
            changed[top] = changed.get(top, False) or needs_new(path, before, after)
    replaces = tuple(top for top, is_replaced in changed.items() if is_replaced)
    return DiffResult(tuple(changed), replaces, delete_first=bool(replaces) and keeps_name)
