"""Progress of a Job: a live line on a terminal, a line per change in a log."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def narration(console: Console) -> Generator[Callable[[str], None]]:
    """Return a callback for changes of a Job's state.

    Args:
        console: the output, with a live line on a terminal, else a line per change.
    """
    if not console.is_terminal:
        yield Changes(console)
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


class Changes:
    """Print plain lines without consecutive duplicates."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, ""

    def __call__(self, line: str) -> None:
        """Print a line that differs from the last one."""
        if line != self._last:
            self._last = line
            self._console.print(line, markup=False, soft_wrap=True)
            self._console.file.flush()
