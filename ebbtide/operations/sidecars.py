"""Attributes of files in a directory that is a backend, which a killed engine leaves empty.

The engine's library writes them in place beside each file. With an empty one every command fails with `EOF`,
and without one it goes on (gocloud.dev 0.46.1, blob/fileblob/attrs.go; run with pulumi 3.259).
"""

from pathlib import Path
from typing import Final

_DIRECTORY: Final = "file://"


def repaired(url: str) -> bool:
    """Delete the empty files of attributes in a backend; true if there were any.

    Args:
        url: address of the backend.
    """
    if not url.startswith(_DIRECTORY):
        return False
    directory = Path(url.removeprefix(_DIRECTORY).partition("?")[0]).expanduser()
    empty = [file for file in directory.glob(".pulumi/**/*.attrs") if file.stat().st_size == 0]
    for file in empty:
        file.unlink(missing_ok=True)
    return bool(empty)
