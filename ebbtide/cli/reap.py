"""The `reap` command. Its dependencies are imported on execution."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ebbtide.cli.consoles import console
from ebbtide.cli.options import Cwd, PreviewFormat
from ebbtide.invocation import command_line

if TYPE_CHECKING:
    from datetime import datetime

    from rich.table import Table

    from ebbtide.operations.reap import Reaping

_FOUND: Final = 1
_REFUSED: Final = 2
_INTERRUPTED: Final = 130


def reap(
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Destroy them instead of listing.")] = False,
    format_: Annotated[
        PreviewFormat, typer.Option("--format", help="Text for people, or JSON.")
    ] = PreviewFormat.TEXT,
    cwd: Cwd = Path(),
) -> None:
    """List the project's expired stacks, or destroy them.

    The stacks are those of `pulumi stack ls`, with your backend and login; the expiry is in their state. Each
    is destroyed as by `ebbtide destroy`, and a failure does not stop the others. Exit status 1: an expired
    stack remains. Exit status 2: with --yes, none could be started.
    """
    from rich.console import Console  # noqa: PLC0415

    from ebbtide import clock  # noqa: PLC0415
    from ebbtide.operations import reap as reaping  # noqa: PLC0415
    from ebbtide.operations.backend import Backend  # noqa: PLC0415
    from ebbtide.project.source import project_directory  # noqa: PLC0415

    now = clock.now()
    backend = Backend(project_directory(cwd.resolve()))
    report = reaping.expired(backend, now)
    if yes:
        try:
            report = reaping.reap(
                backend,
                report.stacks,
                Console(file=sys.stderr if format_ is PreviewFormat.JSON else sys.stdout, highlight=False),
            )
        except KeyboardInterrupt:
            typer.echo(f"Interrupted. Continue with: {_again(cwd)}", err=True)
            raise typer.Exit(_INTERRUPTED) from None
    if format_ is PreviewFormat.JSON:
        typer.echo(report.model_dump_json(indent=2))
    else:
        _show(report, now)
        if report.stacks and not yes:
            typer.echo(f"Destroy them with: {_again(cwd)}")
    if yes and report.is_refused:
        raise typer.Exit(_REFUSED)
    if not report.is_done:
        raise typer.Exit(_FOUND)


def _again(cwd: Path) -> str:
    return command_line("reap", "--yes", *(["--cwd", str(cwd)] if cwd != Path() else []))


def _show(report: "Reaping", now: "datetime") -> None:
    """Print a table of the expired stacks, and the reasons for which some remain."""
    if not report.stacks:
        typer.echo("No stack has expired.")
        return
    output = console(sys.stdout)
    output.print(_table(report, now))
    for stack in report.stacks:
        if stack.error:
            output.print(f"{stack.stack}: {stack.error}", markup=False, soft_wrap=True)


def _table(report: "Reaping", now: "datetime") -> "Table":
    from rich.table import Table  # noqa: PLC0415

    from ebbtide.operations.messages import age, time  # noqa: PLC0415

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("STACK", no_wrap=True)
    for heading in ("EXPIRED AT", "AGO", "CLUSTER"):
        table.add_column(heading)
    table.add_column("IDLE $/H", justify="right")
    table.add_column("STATE")
    for stack in report.stacks:
        cost = stack.idle_usd_per_hour
        table.add_row(
            stack.stack,
            time(stack.expires) if stack.expires else "?",
            age(now - stack.expires) if stack.expires else "",
            ", ".join(stack.clusters),
            "?" if cost is None else f"{cost:.2f}",
            stack.outcome,
        )
    return table
