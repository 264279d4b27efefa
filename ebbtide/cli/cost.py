"""The `cost` command. Its dependencies are imported on execution."""

import csv
import io
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, say, screen, write, write_json
from ebbtide.cli.options import Context, duration
from ebbtide.clients.kubernetes import Api

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ebbtide.operations.ledger import Comparison, Report, Sum

_COLUMNS = ("name", "node_hours", "cost", "attempts", "running", "disruptions", "unpriced_hours")


class CostFormat(StrEnum):
    """Output formats of costs."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"


class Group(StrEnum):
    """Grouping of costs."""

    TEAM = "team"
    USER = "user"
    JOB = "job"
    POOL = "pool"


def cost(
    *,
    since: Annotated[str, typer.Option(help="Period until now, such as 30d or 8h.")] = "30d",
    by: Annotated[Group, typer.Option(help="Grouping of the work.")] = Group.TEAM,
    month: Annotated[
        bool, typer.Option("--month", help="The current month in UTC, instead of --since.")
    ] = False,
    billing: Annotated[
        Path | None,
        typer.Option(help="CSV file of the cloud's billing export, to compare with the pools' cost."),
    ] = None,
    context: Context = "",
    format_: Annotated[CostFormat, typer.Option("--format", help="Format of the output.")] = CostFormat.TEXT,
) -> None:
    """Show what work and idle nodes have cost.

    The stack's add-on `costs` records it on the cluster. Work has the cost of its share of a node: of the
    accelerators, or of CPU and memory. The rest of a node's cost is idle. Exit status 1: a pool's cost
    differs from the billing export by more than 3 %.
    """
    from ebbtide.operations.ledger import compare, read_record, report

    length = duration(since) if not month else timedelta()
    api = Api.of_user(context)
    now = api.now()
    start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0) if month else now - length
    made = report(read_record(api, start.timestamp(), now.timestamp()), start.timestamp(), by.value)
    compared = compare(billing, made.nodes, made.currency) if billing else ()
    match format_:
        case CostFormat.TEXT:
            with screen(None) as output:
                _show(made, output)
                if compared:
                    output.print(_comparison(compared))
        case CostFormat.CSV:
            write(_csv(made), None)
        case CostFormat.JSON:
            billed = {"billing": [asdict(item) for item in compared]} if billing else {}
            write_json(_document(made) | billed)
    if any(not item.agrees for item in compared):
        raise typer.Exit(ExitStatus.FOUND)


def _document(made: "Report") -> dict[str, object]:
    return {
        "since": datetime.fromtimestamp(made.start, UTC).isoformat(timespec="seconds"),
        "until": datetime.fromtimestamp(made.end, UTC).isoformat(timespec="seconds"),
        "currency": made.currency,
        "by": made.by,
        "work": [item.data() for item in made.work],
        "nodes": [item.data() for item in made.nodes],
        "idle": made.idle,
        "notes": list(made.notes),
    }


def _csv(made: "Report") -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("kind", *_COLUMNS, "currency"))
    for kind, sums in ((made.by, made.work), ("nodes", made.nodes)):
        for item in sums:
            cells = (getattr(item, name) for name in _COLUMNS)
            writer.writerow(
                (kind, *(f"{cell:.6f}" if isinstance(cell, float) else cell for cell in cells), made.currency)
            )
    writer.writerow(("idle", "", "", f"{made.idle:.6f}", "", "", "", "", made.currency))
    for note in made.notes:
        say(note, err=True)
    return text.getvalue()


def _show(made: "Report", output: "Console") -> None:
    from rich.text import Text

    from ebbtide.operations.ledger import moment

    output.print(Text(f"Since {moment(made.start)}, in {made.currency}\n"))
    output.print(_table(made.by, made.work, attempts=True))
    output.print(_table("nodes", (*made.nodes, made.total), attempts=False))
    total = made.total
    part = f" ({made.idle / total.cost:.0%} of the nodes' cost)" if total.cost else ""
    output.print(Text(f"\nIdle: {made.idle:.2f}{part}"))
    running = f"{total.running} node{'' if total.running == 1 else 's'}"
    output.print(
        Text(f"Running now: {running}, {total.per_hour:.2f} an hour, {total.per_month:.2f} a month\n")
    )
    for note in made.notes:
        output.print(Text(note))


def _table(title: str, sums: "tuple[Sum, ...]", *, attempts: bool) -> "Table":
    from rich.text import Text

    table = _numbers(
        title, "cost", "node hours", *(["attempts"] if attempts else []), "running", "disruptions"
    )
    for item in sums:
        cells = [
            f"{item.cost:.2f}" if item.cost or not item.unpriced_hours else "unknown",
            f"{item.node_hours:.1f}",
            *([str(item.attempts)] if attempts else []),
            str(item.running),
            str(item.disruptions),
        ]
        table.add_row(Text(item.name or "(none)"), *cells)
    return table


def _comparison(compared: "tuple[Comparison, ...]") -> "Table":
    from rich.text import Text

    table = _numbers("pool", "recorded", "billed", "difference")
    for item in compared:
        amounts = ("unknown" if cost is None else f"{cost:.2f}" for cost in (item.recorded, item.billed))
        difference = "unknown" if item.difference is None else f"{item.difference:+.1%}"
        table.add_row(Text(item.pool), *amounts, difference)
    return table


def _numbers(title: str, *names: str) -> "Table":
    """Return a table with columns of numbers after the first one."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, overflow="fold")
    for name in names:
        table.add_column(name, justify="right")
    return table
