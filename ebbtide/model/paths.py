"""Paths into a declaration, as `pools[2].taints[0].effect`."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

Key = str | int

_PLAIN = re.compile(r"[A-Za-z_][\w-]*")
_TOKEN = re.compile(r'\[(?P<index>\d+)\]|\["(?P<quoted>[^"]*)"\]|(?P<plain>[^.\[\]]+)')


def path_text(keys: Sequence[Key]) -> str:
    """Format a chain of keys and indexes as a path; a key that is no plain word is in brackets:
    `labels["a.b/c"]`."""
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        elif _PLAIN.fullmatch(key):
            text += f".{key}" if text else key
        else:
            text += f'["{key}"]'
    return text


def path_keys(path: str) -> tuple[Key, ...]:
    """Parse a path into its chain of keys and indexes."""
    return tuple(
        int(token["index"]) if token["index"] else (token["quoted"] or token["plain"] or "")
        for token in _TOKEN.finditer(path)
    )


def is_within(path: str, parent: str) -> bool:
    """Check that a path is another path or below it; every path is below the empty one."""
    return not parent or path == parent or path.startswith((f"{parent}.", f"{parent}["))


def position(path: str, written: object) -> tuple[int, ...]:
    """Return the position of a path in the written declaration, for sorting; a path that is not written is
    last."""
    indexes: list[int] = []
    for key in path_keys(path):
        if isinstance(written, Mapping):
            mapping = cast("Mapping[object, object]", written)
            keys = [str(name) for name in mapping]
            indexes.append(keys.index(str(key)) if str(key) in keys else len(keys))
            written = mapping.get(key)
        elif isinstance(written, Sequence) and not isinstance(written, str) and isinstance(key, int):
            items = cast("Sequence[object]", written)
            indexes.append(key)
            written = items[key] if key < len(items) else None
        else:
            indexes.append(key if isinstance(key, int) else 0)
            written = None
    return tuple(indexes)
