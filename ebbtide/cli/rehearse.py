"""The `rehearse` command. Its dependencies are imported on execution."""

import sys
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide import __version__
from ebbtide.cli.consoles import console, say, write
from ebbtide.cli.consoles import screen as screen_of
from ebbtide.cli.exit_status import ExitStatus
from ebbtide.cli.extras import require
from ebbtide.cli.options import ConfigFile, Cwd, Stack, duration, stack_files
from ebbtide.operations.interrupts import ending_signals
from ebbtide.text import install_command

if TYPE_CHECKING:
    from rich.console import Console

    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide_rehearsal.report.document import Report


class RehearsalFormat(StrEnum):
    """Output formats of a rehearsal's report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


def _scenarios() -> list[str]:
    """Return the names of the built-in scenarios, for shell completion."""
    from ebbtide_rehearsal.scenarios import built_in  # noqa: PLC0415

    return list(built_in())


def rehearse(  # noqa: PLR0913 - one parameter an option
    stack: Stack = None,
    *,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Scenario to play: a file, or a name from --list. By default: up, up again, a Job on "
            "every work pool, destroy.",
            autocompletion=_scenarios,
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the built-in scenarios.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="Only find or build the tools, and list them.")
    ] = False,
    manifests: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Directory with manifests that kustomize would fetch; repeatable.",
            show_default=False,
        ),
    ] = None,
    charts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Directory with charts that helm would fetch; repeatable.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory to keep state and logs in.", show_default=False),
    ] = None,
    stay: Annotated[
        bool,
        typer.Option("--stay", help="Create the stack and keep it running, for commands in other terminals."),
    ] = False,
    for_: Annotated[
        timedelta | None,
        typer.Option(
            "--for",
            parser=duration,
            metavar="DURATION",
            help="Time until the end of --stay, such as 2h.",
            show_default=False,
        ),
    ] = None,
    reclaim: Annotated[
        str | None,
        typer.Option(
            metavar="POOL",
            help="In another terminal of --stay: the cloud reclaims a spot node of a pool.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Compare the fake clouds with what `ebbtide up --record DIR` recorded, and run nothing.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        RehearsalFormat, typer.Option("--format", help="Text, JSON, or an HTML page.")
    ] = RehearsalFormat.TEXT,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the report instead of standard output.", show_default=False),
    ] = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Bring a stack up and down on this machine, with a fake cloud.

    The Pulumi engine and Kubernetes are the real ones; nothing is paid for. The first run builds tools from
    Go modules. Exit status 1: an expectation was not met, or a recorded answer differs.
    """
    require("rehearse")
    from ebbtide_rehearsal import __version__ as rehearsal_version  # noqa: PLC0415
    from ebbtide_rehearsal.failures import RehearsalError  # noqa: PLC0415
    from ebbtide_rehearsal.scenarios import built_in, chosen, read  # noqa: PLC0415

    if rehearsal_version != __version__:
        raise RehearsalError(
            f"The rehearsal is {rehearsal_version} and runs the internals of Ebbtide, which is "
            f"{__version__}. Install the same version of both with: {install_command('rehearse')}."
        )
    if list_:
        for name, path in built_in().items():
            say(f"{name:<24} {read(path).title}")
        return
    if reclaim is not None:
        from ebbtide_rehearsal import stay as staying  # noqa: PLC0415

        say(f"The cloud reclaims node {staying.reclaim(reclaim)} of pool {reclaim}.")
        return
    if compare is not None:
        _compare(compare, format_, out)
        return
    # Progress goes to standard error if the report goes to standard output or a file.
    aside = format_ is not RehearsalFormat.TEXT or out is not None
    screen = console(sys.stderr if aside else sys.stdout)
    from ebbtide_rehearsal import rehearse as rehearsing  # noqa: PLC0415
    from ebbtide_rehearsal.failures import RehearsalError  # noqa: PLC0415
    from ebbtide_rehearsal.report import progress, render  # noqa: PLC0415
    from ebbtide_rehearsal.tools import narration  # noqa: PLC0415
    from ebbtide_rehearsal.tools.__main__ import table  # noqa: PLC0415

    if tools:
        with narration(screen) as on_step:
            screen.print(table(rehearsing.tools(on_step).by_name.values()))
        return
    if conflict := _conflict(stay=stay, has_report=bool(scenario or aside), has_limit=bool(for_)):
        raise RehearsalError(conflict)
    files = stack_files(stack, config_file, cwd)
    rehearsing.check_directories(tuple(manifests or ()), tuple(charts or ()))
    file = chosen(scenario) if scenario else None
    selected = read(file) if file else rehearsing.scenario_of(files)
    base_directory = file.parent if file else files.root
    needs = rehearsing.needs(files, selected, base_directory)
    if stay:
        _stay(files, needs, screen, tuple(manifests or ()), tuple(charts or ()), keep, for_)
        return
    with narration(screen) as on_step:
        installed = rehearsing.tools(on_step, needs)
    screen.print(render.heading(selected.title, files.stack, selected.speed))

    with ending_signals(), progress.narration(screen) as watch:
        report = rehearsing.rehearse(
            files,
            selected,
            installed,
            base_directory=base_directory,
            watch=watch,
            manifests=tuple(manifests or ()),
            charts=tuple(charts or ()),
            keep=keep,
        )
    _write(report, format_, out, screen)
    if not report.met:
        raise typer.Exit(ExitStatus.FOUND)


def _conflict(*, stay: bool, has_report: bool, has_limit: bool) -> str | None:
    """Return why options exclude each other; None if they do not."""
    if stay and has_report:
        return "--stay excludes --scenario, --format and --out."
    return "--for limits the time of --stay: add --stay." if has_limit and not stay else None


def _compare(directory: Path, format_: RehearsalFormat, out: Path | None) -> None:
    """Print where a recording of a cloud's provider and the fake clouds differ."""
    from ebbtide_rehearsal.failures import RehearsalError  # noqa: PLC0415
    from ebbtide_rehearsal.real_cloud import render  # noqa: PLC0415
    from ebbtide_rehearsal.real_cloud.compare import compare  # noqa: PLC0415

    if format_ is RehearsalFormat.HTML:
        raise RehearsalError("--compare has no HTML page: use --format json, or no --format.")
    comparison = compare(directory)
    is_json = format_ is RehearsalFormat.JSON
    write(comparison.model_dump_json(indent=2) + "\n" if is_json else render.text(comparison), out)
    if comparison.differences:
        raise typer.Exit(ExitStatus.FOUND)


def _stay(
    files: "StackFiles",
    needs: tuple[str, ...],
    screen: "Console",
    manifests: tuple[Path, ...],
    charts: tuple[Path, ...],
    keep: Path | None,
    limit: timedelta | None,
) -> None:
    """Create the stack, print how other terminals get its environment, and wait."""
    from contextlib import ExitStack  # noqa: PLC0415

    from ebbtide.values import clock  # noqa: PLC0415
    from ebbtide_rehearsal import rehearse as rehearsing  # noqa: PLC0415
    from ebbtide_rehearsal import stay as staying  # noqa: PLC0415
    from ebbtide_rehearsal.tools import narration  # noqa: PLC0415

    with ending_signals(), ExitStack() as ending:
        with narration(screen) as on_step:
            installed = rehearsing.tools(on_step, needs)
            up = ending.enter_context(
                staying.stay(files, installed, on_step, manifests=manifests, charts=charts, keep=keep)
            )
        status = up.create()
        end = clock.now() + limit if limit is not None else None
        until = f"until {end:%Y-%m-%d %H:%M} UTC or Ctrl-C" if end else "until Ctrl-C"
        outcome = "as declared" if status == 0 else "not as declared"
        typer.echo(
            f"\nStack {files.stack} is {outcome}, and stays {until}. In another terminal:\n\n"
            f"    source {up.exports}\n"
        )
        up.wait(limit)
    typer.echo(f"The rehearsal has ended. {f'Its files are in {keep}.' if keep else 'Nothing is left.'}")
    if status:
        raise typer.Exit(ExitStatus.FOUND)


def _write(report: "Report", format_: RehearsalFormat, out: Path | None, screen: "Console") -> None:
    """Write a report to its file, or to standard output; its steps are already on the screen."""
    from ebbtide_rehearsal.report import page, render  # noqa: PLC0415

    match format_:
        case RehearsalFormat.TEXT if out:
            with screen_of(out) as output:
                render.write(report, output)
        case RehearsalFormat.TEXT:
            screen.print(render.ending(report))
        case RehearsalFormat.JSON:
            write(report.model_dump_json(indent=2) + "\n", out)
        case RehearsalFormat.HTML:
            write(page.render(report), out)
    if out:
        screen.print(f"{render.verdict(report)} The report is in {out}.", soft_wrap=True)
