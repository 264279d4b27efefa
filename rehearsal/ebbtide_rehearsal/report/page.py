"""HTML rendering of a rehearsal: one file without scripts, fonts or images from elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from jinja2 import Environment

from ebbtide import durations
from ebbtide.html.environment import environment
from ebbtide_rehearsal.report.document import Report
from ebbtide_rehearsal.report.render import cost_rows, price_gaps, total_words, verdict, zero_words
from ebbtide_rehearsal.report.series import Series, end, pools

_WIDTH: Final = 1000
_HEIGHT: Final = 100
_TICKS: Final = (60, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
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


def render(report: Report) -> str:
    """Render a rehearsal's report as an HTML page."""
    last = end(report)
    return (
        _templates()
        .get_template("rehearsal.html")
        .render(
            report=report,
            verdict=verdict(report),
            charts=list(_charts(report, last)),
            ticks=_ticks(last),
            costs=cost_rows(report),
            gaps=dict(price_gaps(report)),
            total=total_words(report),
            to_zero=zero_words(report),
            end=last,
            missed=sum(bool(step.misses) for step in report.steps),
            reclaims=sum(event.kind == "node-reclaimed" for event in report.events),
            most_jobs=max((jobs.waiting for jobs in report.jobs), default=0),
        )
    )


def _charts(report: Report, last: float) -> Iterable[Chart]:
    for series in pools(report):
        left = int(series.nodes[-1][1])
        yield Chart(
            title=series.pool,
            most=str(series.most),
            summary=f"nodes of {series.pool}: at most {series.most}, {left} at the end, "
            f"{len(series.reclaims)} reclaimed",
            line=_steps(series.nodes, last, series.most),
            kind="nodes",
            marks=tuple(
                (_x(at, last), kind)
                for times, kind in ((series.reclaims, "reclaim"), (series.refusals, "refusal"))
                for at in times
            ),
        )
    if report.jobs:
        waiting = [(0.0, 0.0), *((jobs.at, float(jobs.waiting)) for jobs in report.jobs)]
        most = int(max(count for _, count in waiting))
        yield Chart(
            title="waiting Jobs",
            most=str(most),
            summary=f"waiting Jobs: at most {most}, {report.jobs[-1].waiting} at last",
            line=_steps([*waiting, (last, waiting[-1][1])], last, most),
            kind="jobs",
        )
    if report.money:
        hourly = [(0.0, 0.0), *((entry.at, entry.hourly) for entry in report.money)]
        most = max(usd for _, usd in hourly)
        yield Chart(
            title="$ per hour",
            most=f"{most:.2f}",
            summary=f"US dollars per hour: at most {most:.2f}, {hourly[-1][1]:.2f} at the end",
            line=_steps(hourly, last, most),
            kind="money",
        )
        yield Chart(
            title="$ so far",
            most=f"{report.total_cost:.2f}",
            summary=f"cost so far, up to {total_words(report)}",
            line=_line([(0.0, 0.0), *((m.at, m.usd) for m in report.money)], last, report.total_cost),
            kind="money",
        )


def _ticks(last: float) -> list[tuple[float, str]]:
    """Return the positions of the time axis' marks, in percent, and their times."""
    step = next((tick for tick in _TICKS if last / tick <= _MOST_TICKS), _TICKS[-1])
    return (
        [(100 * at / last, durations.on_a_clock(at)) for at in range(0, int(last) + 1, step)] if last else []
    )


def _x(at: float, last: float) -> float:
    return round(_WIDTH * max(0.0, at) / last, 1) if last else 0.0


def _y(value: float, most: float) -> float:
    return round(_HEIGHT - (_HEIGHT - 4) * value / most, 1) if most else _HEIGHT


def _steps(series: Series, last: float, most: float) -> str:
    """Return a path that stays at each value until the next one."""
    (at, value), *others = series
    return f"M{_x(at, last)} {_y(value, most)}" + "".join(
        f"H{_x(at, last)}V{_y(value, most)}" for at, value in others
    )


def _line(series: Series, last: float, most: float) -> str:
    """Return a path with straight lines between the values."""
    return "M" + "L".join(f"{_x(at, last)} {_y(value, most)}" for at, value in series)


@cache
def _templates() -> Environment:
    templates = environment(__package__ or "")
    templates.filters["clock"] = durations.on_a_clock
    return templates
