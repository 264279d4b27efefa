"""What the clouds change between a write and a read: `schemas/read_back.csv`.

Such a property differs from what was asked for at every refresh. Changes: `forgets` (it is not in the answer),
`fills` (the answer has this JSON where nothing was asked for, within an object that exists), `lowers` (in lower
case), `lowers-group` (the name of the resource group in an Azure id, in lower case).
"""

import csv
import json
import re
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import Any, Final

from ebbtide_rehearsal.cloud.core.property_path import replaced, with_defaults

_GROUP: Final = re.compile(r"/resourcegroups/[^/]+", re.IGNORECASE)


def as_read(token: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's state as its cloud answers it."""
    result = dict(state)
    for path, change, value in _changes().get(token, ()):
        if change == "fills":
            result = dict(with_defaults(result, {path: json.loads(value)}))
        else:
            result = replaced(result, path, partial(_changed, change))
    return result


def _changed(change: str, value: Any) -> Any:
    match change:
        case "forgets":
            return None
        case "lowers" if isinstance(value, str):
            return value.lower()
        case "lowers-group" if isinstance(value, str):
            return _GROUP.sub(lambda match: match[0].lower(), value)
        case _:
            return value


@cache
def _changes() -> dict[str, list[tuple[str, str, str]]]:
    """Return property, change and value of each row, by type."""
    result: dict[str, list[tuple[str, str, str]]] = {}
    text = (resources.files("ebbtide_rehearsal.cloud") / "schemas" / "read_back.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        result.setdefault(row["type"], []).append((row["property"], row["change"], row["value"]))
    return result
