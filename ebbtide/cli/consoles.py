"""Consoles for text output."""

import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console


def write(text: str, out: Path | None) -> None:
    """Write a document to a file, or by default to standard output."""
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


def console(stream: IO[str], *, plain: bool = False) -> "Console":
    """Wrap a stream in a console: coloured and as wide as a terminal, plain otherwise.

    Pipes and files have no width: COLUMNS applies, or else a common terminal width.

    Args:
        stream: the output stream.
        plain: True for a file: never coloured, regardless of the environment.
    """
    from rich.console import Console  # noqa: PLC0415

    width = None if stream.isatty() else shutil.get_terminal_size((120, 0)).columns
    force = False if plain else None
    return Console(file=stream, width=width, force_terminal=force, highlight=False)
