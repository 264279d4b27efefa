"""Consoles for text output."""

import re
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import typer

if TYPE_CHECKING:
    from rich.console import Console


_BLANKS: Final = re.compile(r"[ \t]+$", re.MULTILINE)


def write(text: str, out: Path | None) -> None:
    """Write a document to a file, or by default to standard output."""
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


class _Trimmed:
    """A stream whose lines end without blanks: a table pads its last column."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text, without blanks before the ends of lines."""
        return self._stream.write(_BLANKS.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def console(stream: IO[str], *, plain: bool = False) -> "Console":
    """Wrap a stream in a console: coloured and as wide as a terminal, else plain and without blanks at the
    ends of lines.

    Pipes and files have no width: COLUMNS applies, or else a common terminal width.

    Args:
        stream: the output stream.
        plain: True for a file: never coloured, regardless of the environment.
    """
    from rich.console import Console  # noqa: PLC0415

    width = None if stream.isatty() else shutil.get_terminal_size((120, 0)).columns
    force = False if plain else None
    if not stream.isatty():
        stream = cast("IO[str]", _Trimmed(stream))
    return Console(file=stream, width=width, force_terminal=force, highlight=False)
