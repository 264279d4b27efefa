"""Charts over simulated time, as paths of SVG."""

from dataclasses import dataclass
from typing import Final

from ebbtide.values import durations
from ebbtide_rehearsal.report.series import Series

_WIDTH: Final = 1000
_HEIGHT: Final = 100
_DAY: Final = 86400
_TICKS: Final = (60, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
_DAYS: Final = (1, 2, 7, 14, 30, 60, 120, 365)
"""Distances between marks of the time axis, seconds."""

_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart over simulated time, in a box of 1000 by 100.

    Attributes:
        title: the series' name.
        most: its largest value, in words.
        summary: the series in a sentence, for those who cannot see it.
        line: path of the values.
        kind: CSS class.
        marks: left edges of marks, with their CSS class.
    """

    title: str
    most: str
    summary: str
    line: str
    kind: str
    marks: tuple[tuple[float, str], ...] = ()

    @property
    def area(self) -> str:
        """The path closed along the time axis."""
        return f"{self.line}V{_HEIGHT}H0Z" if self.line else ""


def ticks(last: float) -> list[tuple[float, str]]:
    """Return the positions of the time axis' marks, in percent, and their times."""
    if not last:
        return []
    steps_ = (*_TICKS, *(days * _DAY for days in _DAYS))
    step = next((tick for tick in steps_ if last / tick <= _MOST_TICKS), steps_[-1])
    return [
        (100 * at / last, durations.on_a_clock(at) if step < _DAY else f"day {at // _DAY}")
        for at in range(0, int(last) + 1, step)
    ]


def x(at: float, last: float) -> float:
    """Return the position of a time."""
    return round(_WIDTH * max(0.0, at) / last, 1) if last else 0.0


def y(value: float, most: float) -> float:
    """Return the height of a value."""
    return round(_HEIGHT - (_HEIGHT - 4) * value / most, 1) if most else _HEIGHT


def steps(series: Series, last: float, most: float) -> str:
    """Return a path that stays at each value until the next one."""
    (at, value), *others = series
    return f"M{x(at, last)} {y(value, most)}" + "".join(
        f"H{x(at, last)}V{y(value, most)}" for at, value in others
    )


def line(series: Series, last: float, most: float) -> str:
    """Return a path with straight lines between the values."""
    return "M" + "L".join(f"{x(at, last)} {y(value, most)}" for at, value in series)
