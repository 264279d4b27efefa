"""Renderings of a rehearsal: text, one HTML file without external parts, and progress while it runs."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final, assert_never

from jinja2 import Environment
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from ebbtide.analysis.html import jinja_environment
from ebbtide.text import bound
from ebbtide.values import durations
from ebbtide_rehearsal.report.document import Report, Series, StepReport, end, pools
from ebbtide_rehearsal.scenarios.runner import Finished, Started, Update, Watch, Worked

_INDENT: Final = (0, 0, 0, 2)
_MET, _MISSED = Text("met   ", style="green"), Text("missed", style="bold red")
_WIDTH: Final = 1000
_HEIGHT: Final = 100
_DAY: Final = 86400
_TICKS: Final = (60, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
_DAYS: Final = (1, 2, 7, 14, 30, 60, 120, 365)
"""Distances between marks of the time axis, seconds."""
_MOST_TICKS: Final = 6
_PREPARING: Final = "starting the cloud and the engine"


def heading(title: str, stack: str, speed: float) -> RenderableType:
    """Print the rehearsal's heading."""
    return Text.assemble((title, "bold"), f"\nstack {stack}; cloud operations are {speed:g} times as fast\n")


def step(report: StepReport) -> RenderableType:
    """Print a completed step and its unmet expectations."""
    head = Text.assemble(
        _MISSED if report.misses else _MET, f"  {report.title} ", (f"{report.seconds:.1f} s", "dim")
    )
    return Group(head, *(Padding(Text(miss), (0, 0, 0, 8)) for miss in report.misses))


def ending(report: Report) -> RenderableType:
    """Print the timeline, the cost and the result."""
    return Group(*_blocks(report))


def write(report: Report, console: Console) -> None:
    """Print a whole report."""
    console.print(heading(report.title, report.stack, report.speed))
    for report_step in report.steps:
        console.print(step(report_step))
    console.print(ending(report))


def _blocks(report: Report) -> Iterator[RenderableType]:
    yield Text("\nTimeline", style="bold")
    timeline = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    timeline.add_column(justify="right", style="dim", no_wrap=True)
    timeline.add_column(overflow="fold")
    for event in report.events:
        timeline.add_row(durations.on_a_clock(event.at), Text(event.text))
    yield Padding(timeline, _INDENT)
    if report.total_cost:
        yield Text("\nSimulated cost", style="bold")
        costs = Table(box=box.SIMPLE_HEAD, show_header=False, pad_edge=False, padding=(0, 1))
        costs.add_column()
        costs.add_column(justify="right")
        for item, dollars in cost_rows(report):
            costs.add_row(item, f"${dollars:.3f}")
        costs.add_row(Text("total", style="bold"), Text(total_words(report), style="bold"))
        yield Padding(costs, _INDENT)
        for gap, items in price_gaps(report):
            yield Padding(Text(f"{gap}: {', '.join(items)}"), _INDENT)
    if report.jobs:
        yield Text("\nMinutes from the last Job to no node", style="bold")
        yield Padding(Text(zero_words(report)), _INDENT)
    yield Text(f"\n{verdict(report)}", style="green" if report.met else "bold red")


def cost_rows(report: Report) -> list[tuple[str, float]]:
    """Return the costs of pools, then the others."""
    pools = ((f"nodes of {pool}", dollars) for pool, dollars in sorted(report.cost.items()))
    return [*pools, *report.other_costs.items()]


def zero_words(report: Report) -> str:
    """Format the minutes to no node by pool, as `cpu-spot 10.5, t4-spot 11.0`; without any, the reason."""
    if not report.minutes_to_zero:
        return "not measured: work remained, or no pool was emptied before the cluster was deleted"
    return ", ".join(f"{pool} {minutes:.1f}" for pool, minutes in sorted(report.minutes_to_zero.items()))


def total_words(report: Report) -> str:
    """Format the total cost: `$1.83`, `at least $1.83` or `about $1.83`."""
    return f"{bound(report.without_price, report.estimated)}${report.total_cost:.3f}"


def price_gaps(report: Report) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the items without a known price, and those with an estimated one, each with a title."""
    if report.without_price:
        yield "Without price", report.without_price
    if report.estimated:
        yield "Estimated price", report.estimated


def verdict(report: Report) -> str:
    """Format the result, as `All 8 steps were met: 61 s, at most 700 MiB.`."""
    missed = sum(bool(step.misses) for step in report.steps)
    met = (
        f"All {len(report.steps)} steps were met"
        if not missed
        else f"{missed} of {len(report.steps)} steps missed"
    )
    return f"{met}: {report.seconds:.0f} s, at most {report.memory_mib} MiB."


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
            costs=[
                *((item, (f"{usd:.3f}",)) for item, usd in cost_rows(report)),
                ("Total", (total_words(report),)),
            ],
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


@contextmanager
def narration(console: Console) -> Generator[Watch]:
    """Return a callback for the progress of a rehearsal.

    Args:
        console: the output; a terminal gets live lines, anything else a line for each start and end.
    """
    if not console.is_terminal:
        yield lambda update: _plain(console, update)
        return
    with _TwoLines(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
        console=console,
        transient=True,
    ) as progress:
        yield _Live(progress)


class _TwoLines(Progress):
    """A task with its state on a line of its own: both are long."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the tasks, then their states."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if line := task.fields["line"]:
                yield Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")


class _Live:
    """Live lines with the current step, its duration and its state, below completed steps."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID = progress.add_task(_PREPARING, total=None, line="")

    def __call__(self, update: Update) -> None:
        match update:
            case Started():
                self._progress.remove_task(self._task)
                self._task = self._progress.add_task(_started(update), total=None, line="")
            case Worked(line):
                self._progress.update(self._task, line=line)
            case Finished(report):
                self._progress.console.print(step(report))
            case _:
                assert_never(update)


def _plain(console: Console, update: Update) -> None:
    match update:
        case Started():
            console.print(_started(update), markup=False, highlight=False, soft_wrap=True)
        case Finished(report):
            console.print(step(report))
        case Worked():
            return
        case _:
            assert_never(update)
    console.file.flush()


def _started(step: Started) -> str:
    return f"[{step.number}/{step.of}] {step.title}"
