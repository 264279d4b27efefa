"""The `status` command. Its dependencies are imported on execution."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import show, write
from ebbtide.cli.options import BackendStack, ConfigFile, Cwd, PreviewFormat, stack_name
from ebbtide.errors import EbbtideError

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.declaration.model.cluster import Cluster


class WatchError(EbbtideError):
    """`--watch` with a format for programs."""

    rule = "watch"


def status(
    stack: BackendStack = None,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh every 5 seconds until Ctrl-C.")
    ] = False,
    format_: Annotated[
        PreviewFormat, typer.Option("--format", help="Text for people, or JSON.")
    ] = PreviewFormat.TEXT,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Show a stack's nodes, work, queues, cost and expiry.

    It reads the stack's state and the cluster's API, and changes nothing. The cost is that of this
    moment, at list prices.
    """
    from ebbtide.analysis.preview.stack_files import read_stack  # noqa: PLC0415
    from ebbtide.operations import status as statuses  # noqa: PLC0415
    from ebbtide.operations.engine.backend import Backend  # noqa: PLC0415

    if watch and format_ is PreviewFormat.JSON:
        raise WatchError(
            "--watch refreshes a table and excludes --format json: omit it, and repeat the command."
        )
    name = stack_name(stack, config_file)
    files = read_stack(cwd, name.rpartition("/")[2], config_file=config_file)
    opened = Backend(files.root).opened(name, config_file)
    with files.prices():
        source = statuses.source(name, opened.exported(), opened.outputs(), _declared(files))
        if format_ is PreviewFormat.JSON:
            write(statuses.read(source).model_dump_json(indent=2) + "\n", None)
        else:
            from ebbtide.operations.engine.failures import OperationError  # noqa: PLC0415
            from ebbtide.operations.status_report import tables  # noqa: PLC0415

            show(lambda: tables(statuses.read(source)), OperationError, watch=watch)


def _declared(files: "StackFiles") -> "Cluster | None":
    """Return a stack's declaration; None without a valid one, which a deployed stack may no longer have."""
    from ebbtide.declaration.model.declare import declare  # noqa: PLC0415

    try:
        return declare(files.declaration(), default_name=files.cluster_name)
    except EbbtideError:
        return None
