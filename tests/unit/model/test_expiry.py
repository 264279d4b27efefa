"""Times of expiry, as texts and labels."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from ebbtide.declaration.model import expiry


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 11, 22, 20, 0, tzinfo=UTC), "2026-11-22T20:00Z"),
        (datetime(2026, 11, 22, 20, 0, 1, tzinfo=UTC), "2026-11-22T20:01Z"),
        (datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "2027-01-01T00:00Z"),
        (datetime(2026, 11, 22, 22, 0, tzinfo=timezone(timedelta(hours=2))), "2026-11-22T20:00Z"),
    ],
)
def test_a_time_is_utc_and_rounded_up(moment: datetime, text: str) -> None:
    """To the minute, so that nothing expires early."""
    assert expiry.text(moment) == text
    parsed = expiry.parsed(text)
    assert parsed is not None
    assert timedelta() <= parsed - moment < timedelta(minutes=1)


def test_expiry_follows_the_first_up() -> None:
    """Before it, the text is the same at any time."""
    assert expiry.expiry("2026-11-22T20:30Z", 8) == "2026-11-23T04:30Z"
    before = expiry.expiry(expiry.FIRST_UP, 8)
    assert before == "8h-after-the-first-up"
    assert expiry.parsed(before) is None


@pytest.mark.parametrize("expires", ["2026-11-23T04:30Z", "8h-after-the-first-up"])
def test_a_label_has_the_characters_of_both_clouds(expires: str) -> None:
    """Google Cloud: lower-case letters, digits, `_` and `-`, up to 63."""
    assert re.fullmatch(r"[a-z0-9_-]{1,63}", expiry.label(expires))


def test_labels_sort_as_the_times_do() -> None:
    """Labels sort like their times, so that a cloud's filter finds expired resources."""
    start = datetime(2026, 12, 31, 22, 30, tzinfo=UTC)
    labels = [expiry.label(expiry.text(start + timedelta(hours=hour))) for hour in range(0, 400, 7)]
    assert labels == sorted(labels)
