"""Access to JSON objects with optional keys."""

from collections.abc import Mapping
from typing import Any, cast


def inner(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object in another one; empty if absent."""
    value = of.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(of: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list in an object; empty if absent."""
    value = of.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else []
