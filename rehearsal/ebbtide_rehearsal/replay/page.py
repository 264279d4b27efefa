"""HTML rendering of a replay: one file without scripts, fonts or images from elsewhere."""

from collections.abc import Iterator
from functools import cache

from jinja2 import Environment

from ebbtide.analysis.html.environment import environment
from ebbtide_rehearsal.replay.document import ColumnReport, ReplayReport, SeriesReport
from ebbtide_rehearsal.replay.render import change, named, notes, sections, span, usd, usd_range, wait
from ebbtide_rehearsal.report.charts import Chart, line, steps, ticks, x


def render(report: ReplayReport) -> str:
    """Render a replay's report as an HTML page."""
    scales = _scales(report)
    return (
        _templates()
        .get_template("replay.html")
        .render(
            report=report,
            one=len(report.columns) == 1,
            span=span(report),
            notes=notes(report),
            sections=sections(report),
            charts=[(column.name, list(_charts(column, report, scales))) for column in report.columns],
            ticks=ticks(report.until),
        )
    )


def _scales(report: ReplayReport) -> dict[str, float]:
    """Return the largest value of each series over the declarations, so that charts can be compared."""
    largest: dict[str, float] = {}
    for column in report.columns:
        for series in column.series:
            most = max(value for _, value in series.points)
            largest[series.title] = max(most, largest.get(series.title, 0.0))
    return largest


def _charts(column: ColumnReport, report: ReplayReport, scales: dict[str, float]) -> Iterator[Chart]:
    last = report.until
    for series in column.series:
        most = max(value for _, value in series.points)
        points = [*series.points, (last, series.points[-1][1])]
        draw = line if series.kind == "money" else steps
        form = "{:,.2f}" if series.kind == "money" else "{:,.0f}"
        scale = scales[series.title]
        yield Chart(
            title=series.title,
            most=form.format(most) + (f", on a scale to {form.format(scale)}" if most < scale else ""),
            summary=f"{series.title} of {column.name}: at most {form.format(most)}",
            line=draw(points, last, scale),
            kind=series.kind,
            marks=tuple(_marks(series, last)),
        )


def _marks(series: SeriesReport, last: float) -> Iterator[tuple[float, str]]:
    for times, kind in ((series.reclaims, "reclaim"), (series.refusals, "refusal")):
        for position in dict.fromkeys(x(at, last) for at in times):
            yield position, kind


@cache
def _templates() -> Environment:
    templates = environment("ebbtide_rehearsal.report")
    templates.filters |= {"usd": usd, "range_usd": usd_range, "wait": wait, "change": change, "named": named}
    return templates
