"""Effect of changed inputs on a resource: none, an update, or a replacement."""

from collections.abc import Callable, Mapping
from typing import Any

from ebbtide.analysis.providers.property_path import differences, top_level
from ebbtide.analysis.recording.values import Plain
from ebbtide_rehearsal.cloud.provider import DiffResult


def change(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    is_same: Callable[[str, Plain, Plain], bool],
    needs_new: Callable[[str, Plain, Plain], bool],
    keeps_name: bool,
) -> DiffResult:
    """Return the top-level properties that differ, and those that require a replacement.

    Args:
        old: old inputs, or the values to compare with.
        new: new inputs.
        is_same: returns whether the provider ignores the difference of two values at a path.
        needs_new: returns whether the difference requires a replacement.
        keeps_name: True if both cannot exist at once, so that the old resource is deleted first.
    """
    changed: dict[str, bool] = {}
    for path, before, after in differences(dict(old), dict(new)):
        if not is_same(path, before, after):
            top = top_level(path)
            changed[top] = changed.get(top, False) or needs_new(path, before, after)
    replaces = tuple(top for top, is_replaced in changed.items() if is_replaced)
    return DiffResult(tuple(changed), replaces, delete_first=bool(replaces) and keeps_name)
