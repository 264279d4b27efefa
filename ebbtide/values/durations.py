"""Durations: one parser, and the formats that users and clouds read, of a timedelta or of seconds.

It uses only the standard library, since pipeline authors may have nothing else.
"""

import re
from datetime import timedelta
from typing import Final, TypeAlias

from ebbtide.text import several

Duration: TypeAlias = timedelta | float
"""A duration, or its seconds."""

_NUMBER: Final = r"(?:(\d{1,8}(?:\.\d+)?)"
_WRITTEN: Final = re.compile(rf"(-?)(?=\d){_NUMBER}d)?{_NUMBER}h)?{_NUMBER}m)?{_NUMBER}s)?")
_UNITS: Final = ((86400, "d", "day"), (3600, "h", "hour"), (60, "m", "minute"))


def parse(written: object) -> timedelta:
    """Return a duration; text with units is parsed: `30s`, `90m`, `1h30m`, `7d`.

    Raises:
        ValueError: it is not a duration in whole seconds.
    """
    if isinstance(written, str) and (match := _WRITTEN.fullmatch(written)):
        days, hours, minutes, seconds = (float(number or 0) for number in match.groups()[1:])
        length = timedelta(days, seconds, minutes=minutes, hours=hours)
        written = -length if match[1] else length
    if isinstance(written, timedelta) and not written.microseconds:
        return written
    raise ValueError("a duration is written with its unit, in whole seconds")


def _seconds(duration: Duration) -> int:
    return round(duration.total_seconds() if isinstance(duration, timedelta) else duration)


def in_seconds(duration: Duration) -> str:
    """Format as the clouds' APIs do: `604800s`."""
    return f"{_seconds(duration)}s"


def in_one_unit(duration: Duration) -> str:
    """Format as in a declaration, in the largest unit that divides it: `7d`, `90m`, `45s`."""
    seconds = _seconds(duration)
    for unit, letter, _ in _UNITS:
        if seconds and not seconds % unit:
            return f"{seconds // unit}{letter}"
    return f"{seconds}s"


def in_words(duration: Duration) -> str:
    """Format in words, in the largest unit that divides it: `7 days`, `90 minutes`, `45 s`."""
    seconds = _seconds(duration)
    for unit, _, word in _UNITS:
        if seconds and not seconds % unit:
            return several(seconds // unit, word)
    return f"{seconds} s"


def rounded(duration: Duration) -> str:
    """Format in words, rounded down to the largest unit: `3 days`, `23 hours`, `less than a minute`."""
    seconds = _seconds(duration)
    for unit, _, word in _UNITS:
        if seconds >= unit:
            return several(seconds // unit, word)
    return "less than a minute"


def elapsed(duration: Duration) -> str:
    """Format in two units: `45 s`, `12 min 30 s`, `3 h 5 min`."""
    minutes, seconds = divmod(_seconds(duration), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def approximate(duration: Duration) -> str:
    """Format an estimate: `45 s`, `12 min`, `3 h 10 min`, `2 days`."""
    seconds = _seconds(duration)
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds} s"
    minutes = round(seconds / 60)
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes} min"
    hours, rest = divmod(round(seconds / 600), 6)
    if hours < 48:  # noqa: PLR2004
        return f"{hours} h{f' {rest}0 min' if rest else ''}"
    return several(round(hours / 24), "day")


def on_a_clock(duration: Duration) -> str:
    """Format as on a clock, `0:07:30`; days are counted in hours."""
    minutes, seconds = divmod(_seconds(duration), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
