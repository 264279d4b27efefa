"""Output of commands: text for people, whose control characters are escaped, documents for programs, and exit
statuses."""

import codecs
import io
import json
import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import typer

from ebbtide.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

_PAUSE: Final = 5.0  # seconds between two readings
_IN_ASCII: Final = "ebbtide-in-ascii"
_BLANKS: Final = re.compile(r"[ \t]+$", re.MULTILINE)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace a character that a stream's encoding lacks with similar ones, such as `...`, or its number."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    similar = unicodedata.normalize("NFKD", text.replace("\u2212", "-"))
    return similar.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error(_IN_ASCII, _in_ascii)


def prepare_streams() -> None:
    """Make the output streams accept any text, also if they are closed or their encoding lacks characters."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: the first file that is opened gets its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # By line also into a file: an interrupted command has said what it did.
            stream.reconfigure(errors=_IN_ASCII, line_buffering=True)


def discard_output() -> None:
    """Discard the rest of standard output, which cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str, *, err: bool = False) -> None:
    """Print a text for people, to standard output or standard error."""
    typer.echo(printable(text), err=err)


def write(text: str, out: Path | None) -> None:
    """Write a document in UTF-8 to a file, or by default to standard output.

    Raises:
        OSError: the file cannot be written; the error has its name.
    """
    if out is None and sys.stdout.isatty():
        typer.echo(printable(text), nl=False)
        return
    content = text.encode("utf-8", "backslashreplace")
    if out is None:
        typer.echo(content, nl=False)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        error.filename = str(out)
        raise


def write_json(document: object, out: Path | None = None) -> None:
    """Write a document as JSON to a file, or by default to standard output."""
    write(json.dumps(document, indent=2) + "\n", out)


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
    width = None if stream.isatty() else shutil.get_terminal_size((120, 0)).columns
    force = False if plain else None
    if not stream.isatty():
        stream = cast("IO[str]", _Trimmed(stream))
    return _console_class()(
        file=stream,
        width=width,
        force_terminal=force,
        color_system=None if os.environ.get("NO_COLOR") else "auto",  # without one, no bold either
        highlight=False,
        emoji=False,
    )


@contextmanager
def screen(out: Path | None) -> "Generator[Console]":
    """Yield a console for standard output, or a plain one whose text is then written to a file.

    Raises:
        OSError: the file cannot be written.
    """
    if out is None:
        yield console(sys.stdout)
        return
    text = io.StringIO()
    yield console(text, plain=True)
    write(text.getvalue(), out)


def show(render: "Callable[[], RenderableType]", lost: type[Exception], *, watch: bool = False) -> None:
    """Print what a function reads; with `watch`, refresh it in place until Ctrl-C.

    Args:
        render: reads and returns what is printed.
        lost: the error of a reading that is shown in its place, except in the first.
        watch: whether to refresh.
    """
    output = console(sys.stdout)
    if not watch:
        output.print(render())
        return
    from rich.live import Live
    from rich.text import Text

    try:
        if not output.is_terminal:
            output.print(render())
            while True:
                time.sleep(_PAUSE)
                output.print()
                output.print(render())
        with Live(render(), console=output, auto_refresh=False) as live:
            while True:
                time.sleep(_PAUSE)
                try:
                    shown = render()
                except lost as error:
                    shown = Text(str(error))
                live.update(shown, refresh=True)
    except KeyboardInterrupt:
        return


@cache
def _console_class() -> "type[Console]":
    """Return the class of consoles, without an import of rich before the first."""
    from rich.console import Console

    class EscapingConsole(Console):
        """A console that escapes control characters in texts; its own, as colours, stay."""

        def render(
            self, renderable: "RenderableType", options: "ConsoleOptions | None" = None
        ) -> "Iterable[Segment]":
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

        def on_broken_pipe(self) -> None:
            """Report a closed pipe like any other stream; rich would end the process."""
            raise BrokenPipeError

    return EscapingConsole


class ExitStatus(IntEnum):
    """Exit statuses other than 0."""

    FOUND = 1
    """The command ended with a negative result, as in its help: a rejected stack, running work, leftovers."""
    WRONG = 2
    """Wrong input, or no access: nothing was changed."""
    BROKEN = 3
    """A bug in Ebbtide."""
    OUTPUT_CLOSED = 141
    """The reader of standard output ended, as in `| head`: 128 plus the signal's number, as in a shell."""
    INTERRUPTED = 130
    """Ctrl-C: 128 plus the signal's number, as in a shell."""
