"""The `drift` command. Its dependencies are imported on execution."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, screen, write
from ebbtide.cli.options import BackendStack, ConfigFile, Cwd, Out, stack_files, stack_name

if TYPE_CHECKING:
    from ebbtide.analysis.drift.report import Drift


class DriftFormat(StrEnum):
    """Output formats of a stack's drift."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def drift(
    stack: BackendStack = None,
    *,
    format_: Annotated[
        DriftFormat, typer.Option("--format", help="For a terminal, an issue, or programs.")
    ] = DriftFormat.TEXT,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Compare a stack's state with what exists, and change nothing.

    It reads every resource as `pulumi refresh` does, without writing the state. What autoscalers, clouds and
    controllers change is not drift; for each change of a person, it says what an update would do to it and to
    running work. Exit status 1: a person has changed, deleted or added something.
    """
    from ebbtide.operations import drift as drifts  # noqa: PLC0415
    from ebbtide.operations.engine.backend import Backend  # noqa: PLC0415

    name = stack_name(stack, config_file)
    files = stack_files(name.rpartition("/")[2], config_file, cwd)
    backend = Backend(files.root)
    with files.prices():
        document = drifts.inspect(backend.opened(name, config_file), files, backend.exported_by_all)
    _write(document, drifts.commands(name), format_, out)
    if document.is_found:
        raise typer.Exit(ExitStatus.FOUND)


def _write(document: "Drift", commands: tuple[str, ...], format_: DriftFormat, out: Path | None) -> None:
    from ebbtide.analysis.drift import render  # noqa: PLC0415

    match format_:
        case DriftFormat.TEXT:
            with screen(out) as output:
                render.render(document, output, commands)
        case DriftFormat.MARKDOWN:
            write(render.markdown(document, commands), out)
        case DriftFormat.JSON:
            write(document.model_dump_json(indent=2) + "\n", out)
