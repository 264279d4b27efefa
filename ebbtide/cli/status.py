"""The `status` command. Its dependencies are imported on execution."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ebbtide.cli.consoles import console, write
from ebbtide.cli.options import BackendStack, ConfigFile, Cwd, PreviewFormat, stack_name
from ebbtide.errors import EbbtideError

if TYPE_CHECKING:
    from rich.console import Console

    from ebbtide.operations.status import StatusSource

_PAUSE: Final = 5.0  # seconds between two readings


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
    from ebbtide.operations import status as statuses  # noqa: PLC0415
    from ebbtide.operations.backend import Backend  # noqa: PLC0415
    from ebbtide.preview.stack_files import read_stack  # noqa: PLC0415

    if watch and format_ is PreviewFormat.JSON:
        raise WatchError("--watch refreshes a table, which is no JSON: omit it, and repeat the command.")
    name = stack_name(stack, config_file)
    files = read_stack(cwd, name.rpartition("/")[2], config_file=config_file)
    opened = Backend(files.root).opened(name, config_file)
    with files.prices():
        source = statuses.source(name, opened.exported(), opened.outputs())
        if format_ is PreviewFormat.JSON:
            write(_read(source).model_dump_json(indent=2) + "\n", None)
        elif watch:
            _watch(source, console(sys.stdout))
        else:
            _show(source, console(sys.stdout))


def _read(source: "StatusSource"):  # noqa: ANN202 - its type is imported on execution
    from ebbtide import clock  # noqa: PLC0415
    from ebbtide.operations.status import read  # noqa: PLC0415

    return read(source, clock.now())


def _show(source: "StatusSource", output: "Console") -> None:
    from ebbtide.cli.status_tables import tables  # noqa: PLC0415

    output.print(tables(_read(source)))


def _watch(source: "StatusSource", output: "Console") -> None:
    """Refresh the tables in place until Ctrl-C. A cluster that stops answering is reported, and read again.

    Raises:
        OperationError: the first reading fails.
    """
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from ebbtide.cli.status_tables import tables  # noqa: PLC0415
    from ebbtide.operations.errors import OperationError  # noqa: PLC0415

    try:
        if not output.is_terminal:
            _show(source, output)
            while True:
                time.sleep(_PAUSE)
                output.print()
                _show(source, output)
        with Live(tables(_read(source)), console=output, auto_refresh=False) as live:
            while True:
                time.sleep(_PAUSE)
                try:
                    shown = tables(_read(source))
                except OperationError as error:
                    shown = Text(str(error))
                live.update(shown, refresh=True)
    except KeyboardInterrupt:
        return
