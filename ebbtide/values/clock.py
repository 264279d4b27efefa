"""The clock. Only here do the program and the operations read the time, so that a test can change it.

A machine's clock may be wrong by days. Every answer of a server has its time (`Date`, RFC 9110, 6.6.1): the
clients report it here, and the time is that of the server which answered last.
"""

from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_EXACT: Final = timedelta(minutes=1)
"""Differences up to this are those of slow answers, and ignored."""

_ahead: tuple[timedelta, str] = (timedelta(), "")
"""Lead of this machine's clock, and the server that it was compared with; empty before the first answer."""


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC) - _ahead[0]


def today() -> date:
    """Return the current date in UTC."""
    return now().date()


def heard(server: str, date: str | None) -> None:
    """Compare the clock with a server's.

    Args:
        server: its host name.
        date: the header `Date` of its answer; anything else than a time is ignored.
    """
    global _ahead  # noqa: PLW0603 - the machine has one clock
    try:
        time = parsedate_to_datetime(date or "").astimezone(UTC)
    except ValueError:
        return
    ahead = datetime.now(UTC) - time
    _ahead = (ahead if abs(ahead) > _EXACT else timedelta(), server)


def difference() -> tuple[timedelta, str]:
    """Return how far this machine's clock is ahead of a server's, which is negative if it is behind, and the
    server; empty if no server has answered."""
    return _ahead


def in_utc(moment: datetime) -> str:
    """Format a time to the minute, such as `2026-11-22 20:00 UTC`."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
