"""Access to JSON objects whose keys may be absent."""

from collections.abc import Mapping
from typing import Any, cast


def inner(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object in another one; empty where there is none."""
    found = of.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def items(of: Mapping[str, Any], name: str) -> list[Any]:
    """A list in an object; empty where there is none."""
    found = of.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []
