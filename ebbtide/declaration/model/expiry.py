"""Expiry of an ephemeral cluster: the time of its first `pulumi up` plus its declared lifetime.

A preview has no clock: before the first `up` the time is the text `the-first-up`.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

LABEL: Final = "ebbtide-expires"
"""Label or tag of every billable resource. Its values sort chronologically."""

OUTPUT: Final = "expires"
"""Stack output, and output of the component that stores the time in the stack's state."""

COMPONENT: Final = "ebbtide:stack:Lifetime"
"""Type of the component that stores the time of the first `up`."""

FIRST_UP: Final = "the-first-up"
"""Placeholder for the time of a first `up` that has not happened yet."""

_FORMAT: Final = "%Y-%m-%dT%H:%MZ"


def text(moment: datetime) -> str:
    """Format a time as `2026-11-22T20:00Z`, rounded up to the minute."""
    rounded = moment.astimezone(UTC) + timedelta(minutes=1) - timedelta(microseconds=1)
    return rounded.strftime(_FORMAT)


def parsed(time: str) -> datetime | None:
    """Parse a time formatted by `text`; None if it is not known yet."""
    try:
        return datetime.strptime(time, _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def of_label(value: str) -> datetime | None:
    """Parse the value of a label or tag; None if it is malformed or not known yet."""
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
    """Convert an expiry to a label value: Google Cloud accepts lower-case letters, digits, `_` and `-`
    (Resource Manager docs, labels, 2026), Azure's tags accept more."""
    return expires.lower().replace(":", "-")
