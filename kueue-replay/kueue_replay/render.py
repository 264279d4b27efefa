"""A replay's report as text, and as an HTML page without scripts, fonts or images from elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from jinja2 import Environment
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ebbtide.analysis.html import jinja_environment
from ebbtide.text import several
from ebbtide.values import durations
from ebbtide_rehearsal.report.page import Chart, line, steps, ticks, x
from kueue_replay.report import (
    ColumnReport,
    MappingReport,
    PoolReport,
    ReplayReport,
    SeriesReport,
    Spread,
    WaitReport,
)

Rows = Sequence[tuple[str, Sequence[str]]]
"""Labels, each with a cell for each declaration."""

_NONE: Final = "-"
_MOST_MAPPED: Final = 20
_THOUSAND: Final = 1000
_CAUSES: Final = {
    "reclaim": "a reclaim",
    "scale-down": "scale-down",
    "node expired": "the end of a node's run",
    "failure": "a failure",
}


def write(report: ReplayReport, console: Console) -> None:
    """Print a report."""
    console.print(Group(*_blocks(report)))


def sections(report: ReplayReport) -> list[tuple[str, Rows]]:
    """Return the tables, each with its title."""
    return [
        ("Waiting, median and 95 %", _waits(report, "waits")),
        ("Waiting by size", _waits(report, "sizes")),
        *([("Waiting by user", _waits(report, "users"))] if any(c.users for c in report.columns) else ()),
        ("Cost, $", list(_cost(report))),
        ("Node hours, and idle ones", list(_hours(report))),
        ("Work", list(_work(report))),
        *([("Never ran or ended", list(_never(report)))] if any(c.never for c in report.columns) else ()),
    ]


def span(report: ReplayReport) -> str:
    """Format the time from the first to the last submission."""
    return durations.rounded(report.seconds)


def notes(report: ReplayReport) -> list[str]:
    """Return the remarks about the trace and the prices."""
    gaps = (("Without price", report.without_price), ("Estimated price", report.estimated))
    return [*report.notes, *(f"{gap}: {', '.join(items)}." for gap, items in gaps if items)]


def usd(amount: Spread) -> str:
    """Format an amount of US dollars."""
    return f"${_money(amount.median)}"


def usd_range(amount: Spread) -> str:
    """Format the smallest and the largest amount of the seeds."""
    least, most = _money(amount.least), _money(amount.most)
    return f"{least} to {most}" if least != most else ""


def wait(seconds: Spread | None) -> str:
    """Format a waiting time."""
    return _NONE if seconds is None else durations.elapsed(seconds.median)


def change(ratio: float | None) -> str:
    """Format a ratio as a change, as `+3 %`."""
    return _NONE if ratio is None else f"{ratio - 1:+.0%}".replace("%", " %")


def named(row: MappingReport) -> str:
    """Format the names of jobs in the trace."""
    gpus = "" if not row.gpu_type else "any GPU" if row.gpu_type == "any" else f"GPU {row.gpu_type}"
    return ", ".join(filter(None, (row.queue or "no queue", gpus)))


def _blocks(report: ReplayReport) -> Iterator[RenderableType]:
    for sentence in report.verdict:
        yield Text(sentence, style="bold" if sentence == report.verdict[0] else "")
    jobs = several(report.jobs, "job")
    seeds = several(report.seeds, "seed")
    yield Text(f"{report.trace}: {jobs} in {span(report)}; {seeds}, ranges in parentheses.", style="dim")
    for title, rows in sections(report):
        if rows:
            yield Text(f"\n{title}", style="bold")
            yield Padding(_table(_columns(report), rows), (0, 0, 0, 2))
    if report.assumptions:
        name = report.columns[-1].name
        yield Text(f"\nAssumptions of the cloud's model, half and twice ({name})", style="bold")
        yield Padding(_table(("", "TIMES", "COST", "MEAN WAITING"), _assumptions(report)), (0, 0, 0, 2))
    yield Text("\nThe trace's queues and accelerators", style="bold")
    yield Padding(_table(("", "QUEUE", "JOBS"), _mapping(report)[:_MOST_MAPPED]), (0, 0, 0, 2))
    if len(report.mapping) > _MOST_MAPPED:
        yield Text(f"  and {len(report.mapping) - _MOST_MAPPED} more: --format json")
    yield Text("\nThe trace's requests", style="bold")
    yield Padding(_table(("", "PODS", "JOBS"), _shapes(report)), (0, 0, 0, 2))
    for note in notes(report):
        yield Text(note, style="dim")


def _columns(report: ReplayReport) -> tuple[str, ...]:
    return ("", *(column.name for column in report.columns))


def _assumptions(report: ReplayReport) -> Rows:
    return [
        (effect.name, (f"{effect.factor:g}", change(effect.usd), change(effect.wait)))
        for effect in report.assumptions
    ]


def _mapping(report: ReplayReport) -> Rows:
    return [(named(row), (row.local_queue, f"{row.jobs:,}")) for row in report.mapping]


def _shapes(report: ReplayReport) -> Rows:
    return [(shape.requests, (shape.pods, f"{shape.jobs:,}")) for shape in report.shapes]


def _table(head: Sequence[str], rows: Rows) -> Table:
    table = Table(box=None, show_header=True, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for label, cells in rows:
        table.add_row(label, *cells)
    return table


def _labels(report: ReplayReport, of: Callable[[ColumnReport], Sequence[str]]) -> list[str]:
    """Return the labels of all declarations, in order."""
    return list(dict.fromkeys(label for column in report.columns for label in of(column)))


def _waits(report: ReplayReport, field: str) -> Rows:
    groups: list[dict[str, WaitReport]] = [
        {group.group: group for group in getattr(column, field)} for column in report.columns
    ]
    names = dict.fromkeys(name for column in groups for name in column)
    return [(name, [_wait(column.get(name)) for column in groups]) for name in names]


def _wait(group: WaitReport | None) -> str:
    if group is None or group.half is None or group.most is None:
        return _NONE
    spread = group.most
    seeds = (
        f" ({durations.elapsed(spread.least)} to {durations.elapsed(spread.most)})"
        if spread.least != spread.most
        else ""
    )
    return f"{wait(group.half)}, {wait(spread)}{seeds}"


def _cost(report: ReplayReport) -> Iterator[tuple[str, Sequence[str]]]:
    yield "total", [_ranged(column.usd) for column in report.columns]
    kinds: Sequence[tuple[str, Callable[[ColumnReport], Mapping[str, Spread | None]]]] = (
        ("pool ", lambda column: {pool.pool: pool.usd for pool in column.pools}),
        ("", lambda column: column.others),
        ("nodes ", lambda column: column.options),
        ("used by team ", lambda column: column.teams),
    )
    for prefix, of in kinds:
        for label in _labels(report, lambda column, of=of: list(of(column))):
            columns = [of(column) for column in report.columns]
            spreads = [amounts[label] for amounts in columns if label in amounts]
            if any(spread is None or spread.most for spread in spreads):
                yield f"{prefix}{label}", [_amount(amounts, label) for amounts in columns]


def _amount(amounts: Mapping[str, Spread | None], label: str) -> str:
    if label not in amounts:
        return _NONE
    amount = amounts[label]
    return "unknown" if amount is None else _ranged(amount)


def _hours(report: ReplayReport) -> Iterator[tuple[str, Sequence[str]]]:
    for label in _labels(report, lambda column: [pool.pool for pool in column.pools]):
        pools = [
            next((pool for pool in column.pools if pool.pool == label), None) for column in report.columns
        ]
        if any(pool and pool.node_hours.most for pool in pools):
            yield label, [_node_hours(pool) for pool in pools]


def _node_hours(pool: PoolReport | None) -> str:
    if pool is None:
        return _NONE
    return f"{_count(pool.node_hours.median)}, {_count(pool.idle_hours.median)} idle"


def _work(report: ReplayReport) -> Iterator[tuple[str, Sequence[str]]]:
    rows: Sequence[tuple[str, Callable[[ColumnReport], Spread]]] = (
        ("jobs that ended", lambda column: column.ended),
        ("preemptions", lambda column: column.preemptions),
        ("lost work, hours", lambda column: column.lost_hours),
    )
    for label, of in rows:
        yield label, [_ranged(of(column), _count) for column in report.columns]
    for cause in _labels(report, lambda column: list(column.interruptions)):
        counts = [column.interruptions.get(cause) for column in report.columns]
        yield f"interrupted by {_CAUSES[cause]}", [_ranged(n, _count) if n else "0" for n in counts]
    for label, key in (("reclaimed nodes", "reclaims"), ("refused requests", "refusals")):
        sums = [sum(getattr(pool, key).median for pool in column.pools) for column in report.columns]
        yield label, list(map(_count, sums))
    if deadlines := max(column.deadlines for column in report.columns):
        yield f"missed of {deadlines:,} deadlines", [_ranged(c.missed, _count) for c in report.columns]


def _never(report: ReplayReport) -> Iterator[tuple[str, Sequence[str]]]:
    for why in _labels(report, lambda column: [never.why for never in column.never]):
        cells: list[str] = []
        for column in report.columns:
            found = next((never for never in column.never if never.why == why), None)
            lines = f" (line {', '.join(map(str, found.lines))})" if found else ""
            cells.append(f"{found.jobs:,}{lines}" if found else "0")
        yield why, cells


def _money(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= _THOUSAND else f"{amount:,.2f}"


def _count(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= _THOUSAND or amount == int(amount) else f"{amount:,.1f}"


def _ranged(amount: Spread, form: Callable[[float], str] = _money) -> str:
    if form(amount.least) == form(amount.most):
        return form(amount.median)
    return f"{form(amount.median)} ({form(amount.least)} to {form(amount.most)})"


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
            columns=_columns(report),
            sections=sections(report),
            assumptions=_assumptions(report),
            mapping=_mapping(report),
            shapes=_shapes(report),
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
    templates = jinja_environment("kueue_replay")
    templates.filters |= {"usd": usd, "range_usd": usd_range, "wait": wait}
    return templates
