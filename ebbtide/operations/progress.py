"""Progress of an engine run: a live line on a terminal, a line per resource in a log."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ebbtide.operations.stack import Removal

_WORDS: Final = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "create-replacement": "created again",
    "delete-replaced": "deleted",
}


@contextmanager
def narration(console: Console, total: int | None) -> Generator[Callable[[Removal], None]]:
    """Return a callback for steps of the engine.

    Args:
        console: the output.
        total: number of resources; None if unknown.
    """
    if not console.is_terminal:
        yield lambda removal: _line(console, removal)
        return
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=total)

        def show(removal: Removal) -> None:
            progress.update(task, advance=int(removal.done), description=f"{removal.type} {removal.name}")

        yield show


def _line(console: Console, removal: Removal) -> None:
    if removal.done:
        console.print(
            f"{_WORDS.get(removal.operation, removal.operation)}: {removal.type} {removal.name}",
            markup=False,
            soft_wrap=True,
        )
        console.file.flush()
