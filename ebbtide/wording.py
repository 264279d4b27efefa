"""Numbers and lists in sentences."""

from collections.abc import Iterable


def several(number: object, singular: str, more: str = "") -> str:
    """Format a count: `1 node`, `2 nodes`; `more` is an irregular plural."""
    return f"{number} {singular if number == 1 else more or singular + 's'}"


def and_list(items: Iterable[object]) -> str:
    """Format a list: `a, b and c`."""
    return _joined(items, "and")


def or_list(items: Iterable[object]) -> str:
    """Format alternatives: `1, 2 or 4`."""
    return _joined(items, "or")


def _joined(items: Iterable[object], conjunction: str) -> str:
    *others, last = map(str, items)
    return f"{', '.join(others)} {conjunction} {last}" if others else last
