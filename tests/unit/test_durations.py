"""Durations as text."""

from datetime import timedelta

import pytest

from ebbtide.values import durations

_LENGTHS = {
    "0s": timedelta(),
    "45s": timedelta(seconds=45),
    "90m": timedelta(minutes=90),
    "12h": timedelta(hours=12),
    "7d": timedelta(days=7),
    "-5m": timedelta(minutes=-5),
}


@pytest.mark.parametrize(("text", "length"), _LENGTHS.items())
def test_there_and_back(text: str, length: timedelta) -> None:
    """A duration is written as it was read."""
    assert durations.parse(text) == length
    assert durations.in_one_unit(length) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m", 5400), ("0.5h", 1800), ("1d1s", 86401), ("86400s", 86400), ("1.1h", 3960)]
)
def test_other_forms_are_read(text: str, seconds: int) -> None:
    """Several units, from the largest on, and fractions that are whole seconds."""
    assert durations.parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "-",
        "5",
        "soon",
        "30m1h",
        "1h, 5m",
        "1500ms",
        "0.5s",
        "99999999999d",
        604800,
        None,
        timedelta(0, 0, 1),
    ],
)
def test_no_durations(written: object) -> None:
    """A number without a unit, unknown units, parts of a second, and what a timedelta cannot hold."""
    with pytest.raises(ValueError, match="written with its unit, in whole seconds"):
        durations.parse(written)


@pytest.mark.parametrize(
    ("seconds", "in_seconds", "in_words", "rounded", "elapsed", "clock"),
    [
        (0, "0s", "0 s", "less than a minute", "0 s", "0:00:00"),
        (45, "45s", "45 s", "less than a minute", "45 s", "0:00:45"),
        (59.6, "60s", "1 minute", "1 minute", "1 min 0 s", "0:01:00"),
        (750, "750s", "750 s", "12 minutes", "12 min 30 s", "0:12:30"),
        (5400, "5400s", "90 minutes", "1 hour", "1 h 30 min", "1:30:00"),
        (86340, "86340s", "1439 minutes", "23 hours", "23 h 59 min", "23:59:00"),
        (604800, "604800s", "7 days", "7 days", "168 h 0 min", "168:00:00"),
    ],
)
def test_formats(
    seconds: float, in_seconds: str, in_words: str, rounded: str, elapsed: str, clock: str
) -> None:
    """Seconds and a timedelta read the same."""
    for duration in (seconds, timedelta(seconds=seconds)):
        assert durations.in_seconds(duration) == in_seconds
        assert durations.in_words(duration) == in_words
        assert durations.rounded(duration) == rounded
        assert durations.elapsed(duration) == elapsed
        assert durations.on_a_clock(duration) == clock
