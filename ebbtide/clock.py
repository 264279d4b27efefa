"""The clock. Only here do the program and the operations read the time, so that a test can change it."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
