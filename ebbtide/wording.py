"""Numbers, lists and similar names in sentences."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final


def several(number: object, singular: str, more: str = "") -> str:
    """Format a count, also a formatted one: `1 node`, `2,000 nodes`; `more` is an irregular plural."""
    return f"{number} {singular if str(number) == '1' else more or singular + 's'}"


def and_list(items: Iterable[object]) -> str:
    """Format a list: `a, b and c`."""
    return _joined(items, "and")


def or_list(items: Iterable[object]) -> str:
    """Format alternatives: `1, 2 or 4`."""
    return _joined(items, "or")


def bound(unknown: Collection[str], estimated: Collection[str]) -> str:
    """Return the words before an amount: `at least ` if prices are unknown, `about ` if some are estimates;
    empty if all are known.
    """
    return f"{'at least ' if unknown else ''}{'about ' if estimated else ''}"


def _joined(items: Iterable[object], conjunction: str) -> str:
    *others, last = map(str, items)
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def did_you_mean(written: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return a clause with the nearest known name, such as `; did you mean n1-highmem-8?`, or a full stop if
    there is none."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(written.lower(), names, n=1, cutoff=cutoff)
    return f"; did you mean {names[near[0]]}?" if near else "."


_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters except tab and newline, and those that reorder text or end a line."""


def printable(text: str, *, one_line: bool = False) -> str:
    """Escape control characters as in JSON, since a terminal would obey them.

    Args:
        text: the text.
        one_line: whether newlines are escaped, too.
    """
    escaped = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return escaped.replace("\n", "\\n") if one_line else escaped


def described(value: object) -> str:
    """Describe a value for a message: `the text "4"`, `a mapping`."""
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, Sequence) else str(value)
