"""Parts of Kubernetes objects that may be missing or null."""

from collections.abc import Mapping, Sequence
from typing import Any, cast


def part(raw: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """An object within another; empty where it is missing or null."""
    for key in path:
        raw = cast("Mapping[str, Any]", raw.get(key) or {})
    return raw


def parts(raw: Mapping[str, Any], *path: str) -> Sequence[Mapping[str, Any]]:
    """A list within an object; empty where it is missing or null."""
    return cast("Sequence[Mapping[str, Any]]", part(raw, *path[:-1]).get(path[-1]) or ())


def text(raw: Mapping[str, Any], *path: str) -> str:
    """A string within an object; empty where it is missing or null."""
    return str(part(raw, *path[:-1]).get(path[-1]) or "")


def words(raw: Mapping[str, Any], *path: str) -> Sequence[str]:
    """A list of strings within an object; empty where it is missing or null."""
    return [str(word) for word in parts(raw, *path)]
