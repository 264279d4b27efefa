"""Which stack a command is about: the options that say so, and the files that follow from them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from ebbtide.preview.stack_files import StackFiles

_DEFAULT: Final = "dev"

Stack = Annotated[
    str | None,
    typer.Argument(
        metavar="STACK",
        help="The stack; left out, the one that --config-file is named after, or else dev.",
        show_default=False,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        help="The stack's file, where that is not Pulumi.STACK.yaml beside Pulumi.yaml.", show_default=False
    ),
]
Cwd = Annotated[Path, typer.Option(help="The project's directory, or one below it.")]


def stack_name(stack: str | None, config_file: Path | None) -> str:
    """The stack that is meant: the one that is named, or that its file is named after, or else dev."""
    from ebbtide.preview.stack_files import stack_named_by  # noqa: PLC0415

    return stack or (stack_named_by(config_file) if config_file else None) or _DEFAULT


def stack_files(stack: str | None, config_file: Path | None, cwd: Path) -> "StackFiles":
    """What the project's files say about the stack that is meant.

    Raises:
        StackFileError: when a file is missing, broken or of the wrong shape.
    """
    from ebbtide.preview.stack_files import read_stack  # noqa: PLC0415

    return read_stack(cwd, stack_name(stack, config_file), config_file=config_file)
