"""Where text for people goes."""

import shutil
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console(stream: IO[str], *, plain: bool = False) -> "Console":
    """A stream as a console: in colour and as wide as it is where it is a terminal, else plain.

    A pipe and a file have no width of their own; COLUMNS counts, and else a width that most terminals have
    today.

    Args:
        stream: where it goes.
        plain: never in colour, whatever the environment asks for: a file.
    """
    from rich.console import Console  # noqa: PLC0415

    width = None if stream.isatty() else shutil.get_terminal_size((120, 0)).columns
    force = False if plain else None
    return Console(file=stream, width=width, force_terminal=force, highlight=False)
