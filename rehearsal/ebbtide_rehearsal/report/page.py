"""HTML rendering of a rehearsal: one file without scripts, fonts or images from elsewhere."""

from collections.abc import Iterable
from functools import cache

from jinja2 import Environment

from ebbtide.analysis.html import jinja_environment
from ebbtide.values import durations
from ebbtide_rehearsal.report.charts import Chart, line, steps, ticks, x
from ebbtide_rehearsal.report.document import Report
from ebbtide_rehearsal.report.render import cost_rows, price_gaps, total_words, verdict, zero_words
from ebbtide_rehearsal.report.series import end, pools


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
            ticks=ticks(last),
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
            line=steps(series.nodes, last, series.most),
            kind="nodes",
            marks=tuple(
                (x(at, last), kind)
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
            line=steps([*waiting, (last, waiting[-1][1])], last, most),
            kind="jobs",
        )
    if report.money:
        hourly = [(0.0, 0.0), *((entry.at, entry.hourly) for entry in report.money)]
        most = max(usd for _, usd in hourly)
        yield Chart(
            title="$ per hour",
            most=f"{most:.2f}",
            summary=f"US dollars per hour: at most {most:.2f}, {hourly[-1][1]:.2f} at the end",
            line=steps(hourly, last, most),
            kind="money",
        )
        yield Chart(
            title="$ so far",
            most=f"{report.total_cost:.2f}",
            summary=f"cost so far, up to {total_words(report)}",
            line=line([(0.0, 0.0), *((m.at, m.usd) for m in report.money)], last, report.total_cost),
            kind="money",
        )


@cache
def _templates() -> Environment:
    templates = jinja_environment(__package__ or "")
    templates.filters["clock"] = durations.on_a_clock
    return templates
