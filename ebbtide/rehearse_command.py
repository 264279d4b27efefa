"""The command that rehearses a stack on this machine. What it needs is imported when it runs."""

import contextlib
import sys
from collections.abc import Generator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.consoles import console
from ebbtide.stack_options import ConfigFile, Cwd, Stack, stack_files

if TYPE_CHECKING:
    from ebbtide.rehearsal.report.document import StepReport

_FOUND = 1


@contextlib.contextmanager
def _installed() -> Generator[None]:
    """Say what to install where a package is not there that only a rehearsal needs."""
    from ebbtide.rehearsal.failures import RehearsalError  # noqa: PLC0415

    try:
        yield
    except ModuleNotFoundError as missing:
        raise RehearsalError(
            f"A rehearsal needs {missing.name}, which is not installed: pip install 'ebbtide[rehearsal]'."
        ) from None


class RehearsalFormat(StrEnum):
    """In what form a rehearsal is written."""

    TEXT = "text"
    JSON = "json"


def rehearse(  # noqa: PLR0913 - one parameter an option
    stack: Stack = None,
    *,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="What to play: a file, or the name of one that --list shows. Left out: up, up again, a "
            "Job on every work pool, destroyed.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show the scenarios that come with Ebbtide.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="Only find or build all tools, and show where they are.")
    ] = False,
    manifests: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="A directory with manifests that kustomize would have to fetch; more than once for several.",
            show_default=False,
        ),
    ] = None,
    charts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="A directory of charts that helm would have to fetch; more than once for several.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where all of it is kept, logs too.", show_default=False),
    ] = None,
    format_: Annotated[
        RehearsalFormat, typer.Option("--format", help="Text for people, or the JSON document.")
    ] = RehearsalFormat.TEXT,
    out: Annotated[
        Path | None,
        typer.Option(help="A file for the report, in place of standard output.", show_default=False),
    ] = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Bring a stack up on this machine, with the real Pulumi engine and a real Kubernetes, and tear it down.

    The cloud is a stand-in; nothing is paid for. The first time, tools are built from Go modules. Exit
    status 1 says that an expectation was not met.
    """
    from ebbtide.rehearsal.scenarios import built_in, chosen, read  # noqa: PLC0415

    if list_:
        for name, path in built_in().items():
            typer.echo(f"{name:<24} {read(path).title}")
        return
    # Progress goes aside where the report itself goes to standard output or a file.
    aside = format_ is RehearsalFormat.JSON or out is not None
    screen = console(sys.stderr if aside else sys.stdout)
    with _installed():
        from ebbtide.rehearsal import rehearse as rehearsing  # noqa: PLC0415
        from ebbtide.rehearsal.report import render  # noqa: PLC0415
        from ebbtide.rehearsal.tools import narration  # noqa: PLC0415
        from ebbtide.rehearsal.tools.__main__ import table  # noqa: PLC0415

    if tools:
        with narration(screen) as say:
            screen.print(table(rehearsing.tools(say).found.values()))
        return
    files = stack_files(stack, config_file, cwd)
    file = chosen(scenario) if scenario else None
    played = read(file) if file else rehearsing.scenario_of(files)
    home = file.parent if file else files.root
    needs = rehearsing.needs(files, played, home)
    with narration(screen) as say:
        found = rehearsing.tools(say, needs)
    screen.print(render.heading(played.title, files.stack, played.speed))

    def watch(step: "StepReport") -> None:
        screen.print(render.step(step))

    report = rehearsing.rehearse(
        files,
        played,
        found,
        home=home,
        watch=watch,
        manifests=tuple(manifests or ()),
        charts=tuple(charts or ()),
        keep=keep,
    )
    if format_ is RehearsalFormat.JSON:
        text = report.model_dump_json(indent=2) + "\n"
        if out:
            out.write_text(text, encoding="utf-8")
        else:
            typer.echo(text, nl=False)
    elif out:
        with out.open("w", encoding="utf-8") as file:
            render.write(report, console(file, plain=True))
    else:
        screen.print(render.ending(report))
    if not report.met:
        raise typer.Exit(_FOUND)
