"""Numbers and lists in sentences."""

from collections.abc import Collection, Iterable


def several(number: object, singular: str, more: str = "") -> str:
    """Format a count: `1 node`, `2 nodes`; `more` is an irregular plural."""
    return f"{number} {singular if number == 1 else more or singular + 's'}"


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
