"""Expiry of an ephemeral cluster: the time of its first `pulumi up`, and its declared lifetime after it.

A preview knows no clock: before the first `up` the time is the text `the-first-up`.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

LABEL: Final = "ebbtide-expires"
"""Label or tag of all that is billed. Its values sort as the times do."""

OUTPUT: Final = "expires"
"""Output of the stack, and of the component that the time is read from in a stack's state."""

COMPONENT: Final = "ebbtide:stack:Lifetime"
"""Type of the component that holds the time of the first `up`."""

FIRST_UP: Final = "the-first-up"
"""The time of a first `up` that has not happened yet."""

_FORMAT: Final = "%Y-%m-%dT%H:%MZ"


def text(moment: datetime) -> str:
    """Format a time as `2026-11-22T20:00Z`, rounded up to the minute."""
    rounded = moment.astimezone(UTC) + timedelta(minutes=1) - timedelta(microseconds=1)
    return rounded.strftime(_FORMAT)


def parsed(time: str) -> datetime | None:
    """Parse a time as `text` formats it; None if it is not known yet."""
    try:
        return datetime.strptime(time, _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def of_label(value: str) -> datetime | None:
    """Parse the value of a label or tag; None if it is none, or not known yet."""
    return parsed(re.sub(r"t(\d\d)-(\d\d)z$", r"T\1:\2Z", value))


def expiry(first_up: str, hours: int) -> str:
    """Return the time of expiry, or `8h-after-the-first-up` before the first `up`.

    Args:
        first_up: time of the first `up`, as `text` formats it.
        hours: the declared lifetime.
    """
    moment = parsed(first_up)
    return f"{hours}h-after-{first_up}" if moment is None else text(moment + timedelta(hours=hours))


def label(expires: str) -> str:
    """Convert a time of expiry to the value of a label: Google Cloud accepts lower-case letters, digits, `_`
    and `-` (Resource Manager docs, labels, 2026), Azure's tags accept more."""
    return expires.lower().replace(":", "-")
