"""A Job as whoever follows it sees it: a live line on a terminal, a line for each change in a log."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def narration(console: Console) -> Generator[Callable[[str], None]]:
    """What a Job's state is said to.

    Args:
        console: where to; a terminal gets a line that moves, anything else a line whenever it changes.
    """
    if not console.is_terminal:
        yield _Changes(console)
        return
    with Progress(
        SpinnerColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None)
        yield lambda line: progress.update(task, description=line)


class _Changes:
    """Plain lines, none twice in a row."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, ""

    def __call__(self, line: str) -> None:
        if line != self._last:
            self._last = line
            self._console.print(line, markup=False, soft_wrap=True)
            self._console.file.flush()
