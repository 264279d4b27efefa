"""Progress of a rehearsal: live lines on a terminal, plain lines in a log."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final, assert_never

from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from ebbtide_rehearsal.report import render
from ebbtide_rehearsal.scenarios.progress import Finished, Started, Update, Watch, Worked

_PREPARING: Final = "starting the cloud and the engine"


@contextmanager
def narration(console: Console) -> Generator[Watch]:
    """Return a callback for the progress of a rehearsal.

    Args:
        console: the output; a terminal gets live lines, anything else a line for each start and end.
    """
    if not console.is_terminal:
        yield lambda update: _plain(console, update)
        return
    with _TwoLines(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
        console=console,
        transient=True,
    ) as progress:
        yield _Live(progress)


class _TwoLines(Progress):
    """A task with its state on a line of its own: both are long."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the tasks, then their states."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if line := task.fields["line"]:
                yield Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")


class _Live:
    """Live lines with the current step, its duration and its state, below completed steps."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID = progress.add_task(_PREPARING, total=None, line="")

    def __call__(self, update: Update) -> None:
        match update:
            case Started():
                self._progress.remove_task(self._task)
                self._task = self._progress.add_task(_started(update), total=None, line="")
            case Worked(line):
                self._progress.update(self._task, line=line)
            case Finished(report):
                self._progress.console.print(render.step(report))
            case _:
                assert_never(update)


def _plain(console: Console, update: Update) -> None:
    match update:
        case Started():
            console.print(_started(update), markup=False, highlight=False, soft_wrap=True)
        case Finished(report):
            console.print(render.step(report))
        case Worked():
            return
        case _:
            assert_never(update)
    console.file.flush()


def _started(step: Started) -> str:
    return f"[{step.number}/{step.of}] {step.title}"
