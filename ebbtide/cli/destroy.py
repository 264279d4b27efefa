"""The `destroy` command. Its dependencies are imported on execution."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ebbtide.cli.options import ConfigFile, Cwd, stack_name, stack_names
from ebbtide.invocation import command_line

_FOUND: Final = 1
_INTERRUPTED: Final = 130
"""A shell's exit status after Ctrl-C (128 and the signal's number)."""


def destroy(
    stack: Annotated[
        str | None,
        typer.Argument(
            metavar="STACK",
            help="Stack name, with its organization if it has one; by default the one in the name of "
            "--config-file, or dev.",
            autocompletion=stack_names,
            show_default=False,
        ),
    ] = None,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Skip the confirmation before outcome work.")
    ] = False,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Destroy a stack after listing the work that would end.

    It runs your own `pulumi destroy`, with your backend and login. Exit status 1: something remains, because
    you did not confirm, the engine failed midway, or buckets and disks remain.
    """
    try:
        status = _destroyed(stack, config_file, cwd, yes=yes)
    except KeyboardInterrupt:
        typer.echo("Interrupted; nothing was changed.", err=True)
        status = _INTERRUPTED
    if status:
        raise typer.Exit(status)


def _destroyed(stack: str | None, config_file: Path | None, cwd: Path, *, yes: bool) -> int:
    from rich.console import Console  # noqa: PLC0415

    from ebbtide.operations import destroy as destroying  # noqa: PLC0415
    from ebbtide.operations.backend import Backend  # noqa: PLC0415
    from ebbtide.preview.stack_files import read_stack  # noqa: PLC0415

    name = stack_name(stack, config_file)
    files = read_stack(cwd, name.rpartition("/")[2], config_file=config_file)

    def ask(question: str) -> bool:
        if yes:
            return True
        if sys.stdin.isatty():
            return typer.confirm(question)
        again = _again(name, config_file, cwd)
        typer.echo(
            f"{question} There is no terminal to confirm, so nothing was changed. Continue with: {again}"
        )
        return False

    outcome = destroying.destroy(
        Backend(files.root).opened(name, config_file), files.config_file.name, Console(highlight=False), ask
    )
    if outcome is None:
        return _FOUND
    if outcome.interrupted:
        return _INTERRUPTED
    return 0 if outcome.done and not outcome.leftovers else _FOUND


def _again(stack: str, config_file: Path | None, cwd: Path) -> str:
    where = ["--cwd", str(cwd)] if cwd != Path() else []
    of = ["--config-file", str(config_file)] if config_file else []
    return command_line("destroy", stack, "--yes", *of, *where)
