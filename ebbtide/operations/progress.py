"""Progress of an engine run: a live line on a terminal, a line per resource in a log."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from ebbtide.operations.stack import Removal

WORDS: Final = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "create-replacement": "created again",
    "delete-replaced": "deleted",
}
"""Words for completed operations of the engine."""
_BAR: Final = 16


@contextmanager
def narration(
    console: Console, total: int | None, counts: Callable[[Removal], bool] = lambda _: True
) -> Generator[Callable[[Removal], None]]:
    """Return a callback for steps of the engine.

    Args:
        console: the output.
        total: number of resources; None if unknown.
        counts: returns whether a resource is part of the total; by default every one is.
    """
    if not console.is_terminal:
        yield lambda removal: _line(console, removal)
        return
    whole = Column(no_wrap=True)
    rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    count = (
        TextColumn("{task.completed} done", table_column=whole)
        if total is None
        else MofNCompleteColumn(table_column=whole)
    )
    with Progress(
        BarColumn(bar_width=_BAR, table_column=whole),
        count,
        TimeElapsedColumn(table_column=whole),
        TextColumn("{task.description}", markup=False, table_column=rest),
        console=console,
        transient=True,
        expand=True,
    ) as progress:
        task = progress.add_task("", total=total)
        done: set[tuple[str, str]] = set()

        def show(removal: Removal) -> None:
            if removal.done and counts(removal):
                done.add((removal.type, removal.name))
            kind = removal.type.rpartition(":")[2]
            progress.update(task, completed=len(done), description=f"{kind} {removal.name}")

        yield show


def _line(console: Console, removal: Removal) -> None:
    if removal.done:
        console.print(
            f"{WORDS.get(removal.operation, removal.operation)}: {removal.type} {removal.name}",
            markup=False,
            soft_wrap=True,
        )
        console.file.flush()
