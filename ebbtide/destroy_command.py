"""The command that destroys a stack. What it needs is imported when it runs."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ebbtide.stack_options import ConfigFile, Cwd, stack_name

_FOUND: Final = 1
_INTERRUPTED: Final = 130
"""What a shell makes of Ctrl-C (128 and the signal's number)."""


def destroy(
    stack: Annotated[
        str | None,
        typer.Argument(
            metavar="STACK",
            help="The stack, with its organization where it has one; left out, the one that --config-file "
            "is named after, or else dev.",
            show_default=False,
        ),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, though work would end.")] = False,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Destroy a stack in the cloud, once the work that still runs on it is named.

    It is what `pulumi destroy` does, with your own `pulumi`, backend and login. Exit status 1 says that not
    all is gone: nobody said yes, the engine failed midway, or buckets and disks go on costing.
    """
    try:
        status = _destroyed(stack, config_file, cwd, yes=yes)
    except KeyboardInterrupt:
        typer.echo("Interrupted; nothing was touched.", err=True)
        status = _INTERRUPTED
    if status:
        raise typer.Exit(status)


def _destroyed(stack: str | None, config_file: Path | None, cwd: Path, *, yes: bool) -> int:
    from rich.console import Console  # noqa: PLC0415

    try:
        from ebbtide.operations import destroy as destroying  # noqa: PLC0415
        from ebbtide.operations.stack import opened  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "pulumi":
            raise
        from ebbtide.operations.errors import OperationError  # noqa: PLC0415

        raise OperationError(
            "Destroying a stack needs Pulumi's package for Python: pip install 'ebbtide[gke,cluster]', or "
            "'ebbtide[aks,cluster]'."
        ) from None
    from ebbtide.preview.stack_files import read_stack  # noqa: PLC0415

    name = stack_name(stack, config_file)
    files = read_stack(cwd, name.rpartition("/")[2], config_file=config_file)

    def ask(question: str) -> bool:
        if yes:
            return True
        if sys.stdin.isatty():
            return typer.confirm(question)
        again = _again(name, config_file, cwd)
        typer.echo(f"{question} Nobody can be asked here, so nothing was touched. Go on with: {again}")
        return False

    ending = destroying.destroy(
        opened(files.root, name, config_file), files.config_file.name, Console(highlight=False), ask
    )
    if ending is None:
        return _FOUND
    if ending.interrupted:
        return _INTERRUPTED
    return 0 if ending.done and not ending.left else _FOUND


def _again(stack: str, config_file: Path | None, cwd: Path) -> str:
    where = ["--cwd", str(cwd)] if cwd != Path() else []
    of = ["--config-file", str(config_file)] if config_file else []
    return shlex.join(["ebbtide", "destroy", stack, "--yes", *of, *where])
