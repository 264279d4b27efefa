"""The clock. The program and the operations read the time here alone, so that a test can move it."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time, UTC."""
    return datetime.now(UTC)
