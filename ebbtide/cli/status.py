"""The `status` and `drift` commands. Their dependencies are imported on execution."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, screen, show, write
from ebbtide.cli.options import (
    BackendStack,
    ConfigFile,
    Cwd,
    Format,
    Out,
    PreviewFormat,
    Watch,
    opened_stack,
    stack_name,
)
from ebbtide.errors import EbbtideError

if TYPE_CHECKING:
    from ebbtide.analysis.drift.drift_document import Drift
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.declaration.model.cluster import Cluster


class WatchError(EbbtideError):
    """`--watch` with a format for programs."""

    rule = "watch"


def status(
    stack: BackendStack = None,
    *,
    watch: Watch = False,
    format_: Format = PreviewFormat.TEXT,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Show a stack's nodes, work, queues, cost and expiry.

    It reads the stack's state and the cluster's API, and changes nothing. The cost is that of this
    moment, at list prices.
    """
    from ebbtide.operations import status as statuses

    if watch and format_ is PreviewFormat.JSON:
        raise WatchError(
            "--watch refreshes a table and excludes --format json: omit it, and repeat the command."
        )
    name = stack_name(stack, config_file)
    files, _, opened = opened_stack(name, config_file, cwd)
    with files.prices():
        source = statuses.source(name, opened.exported(), opened.outputs(), _declared(files))
        if format_ is PreviewFormat.JSON:
            write(statuses.read(source).model_dump_json(indent=2) + "\n", None)
        else:
            from ebbtide.operations.engine.failures import OperationError
            from ebbtide.operations.status_report import tables

            show(lambda: tables(statuses.read(source)), OperationError, watch=watch)


def _declared(files: "StackFiles") -> "Cluster | None":
    """Return a stack's declaration; None without a valid one, which a deployed stack may no longer have."""
    from ebbtide.declaration.model.declare import declare

    try:
        return declare(files.declaration(), default_name=files.cluster_name)
    except EbbtideError:
        return None


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
    from ebbtide.operations import drift as drifts

    name = stack_name(stack, config_file)
    files, backend, opened = opened_stack(name, config_file, cwd)
    with files.prices():
        document = drifts.inspect(opened, files, backend.exported_by_all)
    _write(document, drifts.commands(name), format_, out)
    if document.is_found:
        raise typer.Exit(ExitStatus.FOUND)


def _write(document: "Drift", commands: tuple[str, ...], format_: DriftFormat, out: Path | None) -> None:
    from ebbtide.analysis.drift import render_drift

    match format_:
        case DriftFormat.TEXT:
            with screen(out) as output:
                render_drift.render(document, output, commands)
        case DriftFormat.MARKDOWN:
            write(render_drift.markdown(document, commands), out)
        case DriftFormat.JSON:
            write(document.model_dump_json(indent=2) + "\n", out)
