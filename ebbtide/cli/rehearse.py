"""The `rehearse` command. Its dependencies are imported on execution."""

import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, console, say, write
from ebbtide.cli.consoles import screen as screen_of
from ebbtide.cli.error_output import require
from ebbtide.cli.options import ConfigFile, Cwd, FormatOfReport, ReportFormat, Stack, duration, stack_files

if TYPE_CHECKING:
    from rich.console import Console


def _scenarios() -> list[str]:
    """Return the names of the built-in scenarios, for shell completion."""
    return [name for name, _ in _module().scenario_titles()]


def rehearse(  # noqa: PLR0913 - one parameter an option, some of which are commands of their own
    stack: Stack = None,
    *,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Scenario to play: a file, or a name from --list. By default: up, up again, a Job on "
            "every work pool, destroy.",
            autocompletion=_scenarios,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the built-in scenarios.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="Only find or build the tools, and list them.")
    ] = False,
    manifests: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Directory with manifests that kustomize would fetch; repeatable."),
    ] = None,
    charts: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Directory with charts that helm would fetch; repeatable."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory to keep state and logs in.")
    ] = None,
    stay: Annotated[
        bool,
        typer.Option("--stay", help="Create the stack and keep it running, for commands in other terminals."),
    ] = False,
    for_: Annotated[
        timedelta | None,
        typer.Option(
            "--for", parser=duration, metavar="DURATION", help="Time until the end of --stay, such as 2h."
        ),
    ] = None,
    reclaim: Annotated[
        str | None,
        typer.Option(
            metavar="POOL", help="In another terminal of --stay: the cloud reclaims a spot node of a pool."
        ),
    ] = None,
    format_: FormatOfReport = ReportFormat.TEXT,
    out: Annotated[Path | None, typer.Option(help="File for the report instead of standard output.")] = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Bring a stack up and down on this machine, with a fake cloud.

    The Pulumi engine and Kubernetes are the real ones; nothing is paid for. The first run builds tools from
    Go modules. Exit status 1: an expectation was not met.
    """
    module = _module()
    if list_:
        for name, title in module.scenario_titles():
            say(f"{name:<24} {title}")
        return
    if reclaim is not None:
        say(f"The cloud reclaims node {module.reclaim(reclaim)} of pool {reclaim}.")
        return
    # Progress goes to standard error if the report goes to standard output or a file.
    aside = format_ is not ReportFormat.TEXT or out is not None
    screen = console(sys.stderr if aside else sys.stdout)
    if tools:
        module.show_tools(screen)
        return
    if stay and (scenario or aside):
        raise module.RehearsalError("--stay excludes --scenario, --format and --out.")
    if for_ and not stay:
        raise module.RehearsalError("--for limits the time of --stay: add --stay.")
    files = stack_files(stack, config_file, cwd)
    rehearsal = module.Rehearsal(files, screen, scenario, tuple(manifests or ()), tuple(charts or ()), keep)
    if stay:
        raise typer.Exit(0 if rehearsal.stay(for_, typer.echo) else ExitStatus.FOUND)
    report = rehearsal.run()
    _write(module, report, format_, out, screen)
    if not report.met:
        raise typer.Exit(ExitStatus.FOUND)


def _write(
    module: ModuleType, report: object, format_: ReportFormat, out: Path | None, screen: "Console"
) -> None:
    """Write a report to its file, or to standard output; its steps are already on the screen."""
    if format_ is not ReportFormat.TEXT:
        write(module.document(report, format_.value), out)
    elif out:
        with screen_of(out) as output:
            module.show(report, output, whole=True)
    else:
        module.show(report, screen, whole=False)
    if out:
        screen.print(f"{module.verdict(report)} The report is in {out}.", soft_wrap=True)


def _module() -> ModuleType:
    """Return the module of the rehearsal, a distribution of its own.

    Raises:
        ModuleNotFoundError: a package of the extra is missing.
        RehearsalError: it has another version.
    """
    require("rehearse")
    from ebbtide_rehearsal import rehearse as rehearsal

    rehearsal.check_version()
    return rehearsal
