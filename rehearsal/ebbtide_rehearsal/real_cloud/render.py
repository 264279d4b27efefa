"""The comparison of a recording as text."""

import json
from collections.abc import Iterator
from itertools import groupby

from ebbtide.text import several
from ebbtide_rehearsal.real_cloud.compare import Comparison, Difference

_LONGEST = 200


def text(comparison: Comparison) -> str:
    """Return the comparison as text."""
    return "\n".join((*_lines(comparison), ""))


def _lines(comparison: Comparison) -> Iterator[str]:
    for (type_, resource, call, file), fields in groupby(comparison.differences, _group):
        yield f"{type_} {resource}, {call} ({file}):"
        for item in fields:
            yield f"  {item.path}"
            yield f"    real: {_value(item.real)}"
            yield f"    ours: {_value(item.ours)} ({item.source})"
    count = len(comparison.differences)
    found = f"{count} fields differ" if count > 1 else f"{'one' if count else 'no'} field differs"
    yield f"{several(comparison.compared, 'recorded call')} compared: {found}."
    if comparison.skipped:
        calls = several(comparison.skipped, "call")
        yield f"Not compared: {calls} about resources that were created before the recording."
    for version in comparison.versions:
        yield (
            f"The recording is of the provider {version.package} {version.recorded}, and the fake cloud of "
            f"{version.ours}: differences may come from the provider."
        )


def _group(item: Difference) -> tuple[str, str, str, str]:
    return item.type, item.resource, item.call, item.file


def _value(value: object) -> str:
    if value is None:
        return "none"
    written = json.dumps(value, sort_keys=True)
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}…"
