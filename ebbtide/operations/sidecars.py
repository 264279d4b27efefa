"""Attribute files of a directory backend, which a killed engine leaves empty.

The engine's library writes one beside each file, not atomically. With an empty one every command fails with
`EOF`; a missing one is harmless (gocloud.dev 0.46.1, blob/fileblob/attrs.go; run with pulumi 3.259).
"""

from pathlib import Path
from typing import Final

_DIRECTORY: Final = "file://"


def repaired(url: str) -> bool:
    """Delete the empty attribute files of a backend; return whether there were any.

    Args:
        url: URL of the backend.
    """
    if not url.startswith(_DIRECTORY):
        return False
    directory = Path(url.removeprefix(_DIRECTORY).partition("?")[0]).expanduser()
    empty = [file for file in directory.glob(".pulumi/**/*.attrs") if file.stat().st_size == 0]
    for file in empty:
        file.unlink(missing_ok=True)
    return bool(empty)
