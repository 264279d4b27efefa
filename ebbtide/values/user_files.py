"""Text files and JSON from users, within limits."""

import json
import re
import stat
from pathlib import Path
from typing import Any, Final

from ebbtide.errors import EbbtideError

LARGEST: Final = 1 << 20
"""Maximum size in bytes of a file that people write."""

LARGEST_GENERATED: Final = 1 << 26
"""Maximum size in bytes of a file that a program writes, such as a stack's state."""

DEEPEST: Final = 100
"""Maximum depth of nested lists and mappings."""

_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
"""A string of JSON, which may lack its end, or a bracket."""


class UserFileError(EbbtideError):
    """The file cannot be read as text. The message is a sentence without the file's name."""


def read_text(path: Path, largest: int = LARGEST) -> str:
    """Read a text file, or a pipe.

    Args:
        largest: maximum size in bytes.

    Raises:
        UserFileError: it does not exist, is not a file, is too large or is not UTF-8 text.
    """
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise UserFileError("It is not a file." if not stat.S_ISDIR(mode) else "It is a directory.")
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except OSError as error:
        raise UserFileError(f"The file cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserFileError("The file cannot be read: its name has a NUL character.") from error
    if len(content) > largest:
        raise UserFileError(f"The file is too large: over {largest >> 20} MiB.")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UserFileError(f"The file is not UTF-8 text: {error.reason} at byte {error.start}.") from error


def parse_json(text: str) -> Any:
    """Parse JSON.

    Raises:
        ValueError: it is malformed, or nested too deeply.
    """
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > DEEPEST:
            raise ValueError(f"It is nested more than {DEEPEST} levels deep.")
    return json.loads(text)
