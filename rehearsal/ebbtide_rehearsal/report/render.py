"""A rehearsal as text: each completed step, then the timeline and the simulated cost."""

from collections.abc import Iterator
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ebbtide.text import bound
from ebbtide.values import durations
from ebbtide_rehearsal.report.document import Report, StepReport

_INDENT: Final = (0, 0, 0, 2)
_MET, _MISSED = Text("met   ", style="green"), Text("missed", style="bold red")


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
