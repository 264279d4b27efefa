"""Changes that the clouds make between a write and a read: `schemas/read_back.csv`.

Changes: `forgets` (the response omits the property), `fills` (the response has this JSON for an omitted
property of an existing object), `uppers` (upper case). If a refresh finds another value than the program's,
every update shows a difference.
"""

import csv
import json
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import Any

from ebbtide.analysis.providers.property_path import replaced, with_defaults


def as_read(token: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's state as returned by its cloud."""
    result = with_defaults(state, defaults_of(token))
    for path, change, _ in _changes().get(token, ()):
        result = replaced(result, path, partial(_changed, change))
    return result


def defaults_of(token: str) -> dict[str, Any]:
    """Return the values that a cloud fills in for omitted properties of a type, by path."""
    return {path: json.loads(value) for path, change, value in _changes().get(token, ()) if change == "fills"}


def rows_of(token: str) -> tuple[str, ...]:
    """Return the properties of a type that a cloud changes, by path without indices."""
    return tuple(path for path, _, _ in _changes().get(token, ()))


def _changed(change: str, value: Any) -> Any:
    match change:
        case "forgets":
            return None
        case "uppers":
            return str(value).upper()
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
