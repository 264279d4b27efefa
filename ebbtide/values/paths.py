"""Paths into JSON values, such as `pools[2].taints[0].effect`, in the syntax of Pulumi's property paths."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, Final, cast

Key = str | int
Object = dict[str, Any]
"""An object as in JSON, such as one of Kubernetes."""
Manifest = Mapping[str, Any]
"""An object that is only read."""

_PLAIN: Final = re.compile(r"[A-Za-z_$][\w$-]*")
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TOKEN: Final = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')


def child_path(path: str, key: Key) -> str:
    """Return the path of a key or index below a path; a key that is not a plain word is quoted:
    `labels["a.b/c"]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def path_text(keys: Sequence[Key]) -> str:
    """Format a chain of keys and indexes as a path."""
    return reduce(child_path, keys, "")


@lru_cache(maxsize=4096)
def path_keys(path: str) -> tuple[Key, ...]:
    """Parse a path into its chain of keys and indexes."""
    return tuple(
        int(index) if index else key or json.loads(f'"{quoted}"')
        for quoted, index, key in _TOKEN.findall(path)
    )


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path; None if it does not exist."""
    for key in path_keys(path):
        if isinstance(key, int):
            items = cast("list[Any]", value) if isinstance(value, list) else []
            value = items[key] if key < len(items) else None
        else:
            value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return value


def is_within(path: str, parent: str) -> bool:
    """Check that a path equals another path or is below it; every path is below the empty one."""
    return not parent or path == parent or path.startswith((f"{parent}.", f"{parent}["))


def ancestors(path: str) -> Iterator[str]:
    """Yield the paths above a path, without the path itself."""
    keys = path_keys(path)
    for length in range(len(keys) - 1, 0, -1):
        yield path_text(keys[:length])


def position(path: str, written: object) -> tuple[int, ...]:
    """Return the position of a path in the written declaration, for sorting; a path that is not in it is
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


def python_name(name: str) -> str:
    """Return the Python SDK's name of a provider's property: `os_disk_size_gb` for `osDiskSizeGB`."""
    return _WORD_START.sub("_", name).lower()
