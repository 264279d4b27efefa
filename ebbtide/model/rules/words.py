"""Small words that the sentences of several rules share."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from ebbtide.catalog import CloudKind


def called(cloud: CloudKind) -> str:
    """Return the name of a cloud's Kubernetes."""
    return cloud.value.upper()


def either(options: Iterable[object]) -> str:
    """Options in a sentence: `1, 2 or 4`."""
    *some, last = [str(option) for option in options]
    return f"{', '.join(some)} or {last}" if some else last


def both(things: Sequence[str]) -> str:
    """Things in a sentence: `a, b and c`."""
    *some, last = things
    return f"{', '.join(some)} and {last}" if some else last


def dollars(amount: float) -> str:
    """Format an amount for a sentence: `$0.067`, `$12.50`."""
    return f"${amount:.3f}" if amount < 1 else f"${amount:.2f}"


def span(duration: timedelta) -> str:
    """Format a duration: `7d`, `90m`, `45s`."""
    seconds = int(duration.total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
