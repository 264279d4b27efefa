"""Files and texts that usually hold secrets, by the patterns of `data/secrets.csv`.

It uses only the standard library, since pipeline authors may have nothing else.
"""

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

_EXCEPT: Final = "!"


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A row.

    Attributes:
        kind: `file` or `text`.
        pattern: of files, a name or the end of a path with wildcards, in lower case, or after `!` one that is
            an exception; of texts, a regular expression.
        contains: text of such a file that holds a secret; empty for any.
        holds: what it holds.
    """

    kind: str
    pattern: str
    contains: str
    holds: str


@cache
def _patterns(kind: str) -> tuple[SecretPattern, ...]:
    text = files("ebbtide.work").joinpath("data/secrets.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    every = (SecretPattern(row["kind"], row["pattern"], row["contains"], row["holds"]) for row in rows)
    return tuple(item for item in every if item.kind == kind)


def secret_in_text(text: str) -> str:
    """Return what a text holds that looks like a secret, such as `a token of GitHub`; empty for nothing."""
    found = (item.holds for item in _patterns("text") if re.search(item.pattern, text))
    return next(found, "")


def secret_in_file(path: str, read: Callable[[], str]) -> str:
    """Return what a file holds that is a secret, by its name and content; empty for nothing.

    Args:
        path: its path, with `/`.
        read: returns its content, or the begin of it.
    """
    matching = [item for item in _patterns("file") if _matches(path, item.pattern.removeprefix(_EXCEPT))]
    if any(item.pattern.startswith(_EXCEPT) for item in matching):
        return ""
    return next((item.holds for item in matching if not item.contains), "") or _held(matching, read)


def _held(patterns: Iterable[SecretPattern], read: Callable[[], str]) -> str:
    content = read() if patterns else ""
    return next((item.holds for item in patterns if item.contains in content), "")


def _matches(path: str, pattern: str) -> bool:
    """Check the end of a path, in any case: `.ENV` is a file of that name on some machines."""
    parts = PurePosixPath(path.lower()).parts
    return fnmatchcase("/".join(parts[-pattern.count("/") - 1 :]), pattern)
