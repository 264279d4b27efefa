"""Access to optional or null parts of Kubernetes objects."""

from collections.abc import Mapping, Sequence
from typing import Any, cast


def part(raw: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a nested object; empty if missing or null."""
    for key in path:
        raw = cast("Mapping[str, Any]", raw.get(key) or {})
    return raw


def parts(raw: Mapping[str, Any], *path: str) -> Sequence[Mapping[str, Any]]:
    """Return a nested list; empty if missing or null."""
    return cast("Sequence[Mapping[str, Any]]", part(raw, *path[:-1]).get(path[-1]) or ())


def text(raw: Mapping[str, Any], *path: str) -> str:
    """Return a nested string; empty if missing or null."""
    return str(part(raw, *path[:-1]).get(path[-1]) or "")


def words(raw: Mapping[str, Any], *path: str) -> Sequence[str]:
    """Return a nested list of strings; empty if missing or null."""
    return [str(word) for word in parts(raw, *path)]
