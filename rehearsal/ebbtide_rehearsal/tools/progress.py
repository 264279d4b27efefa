"""Build progress: a live line on a terminal, plain lines in a log."""

import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import assert_never

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from ebbtide.values import durations
from ebbtide_rehearsal.tools.find import Tools, ensure
from ebbtide_rehearsal.tools.items import Finished, NotDownloaded, OnStep, Started, Step, Waiting, Worked


@contextmanager
def narration(console: Console) -> Generator[OnStep]:
    """Return a callback for the steps of `ensure`.

    Args:
        console: the output; a terminal gets a live line, anything else a line for each start and end, and for
            each minute of a build.
    """
    if not console.is_terminal:
        yield _Log(console)
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[line]}", style="dim", markup=False),
        console=console,
        transient=True,
    ) as progress:
        yield _Live(progress)


def narrated(names: Iterable[str], console: Console | None = None) -> Tools:
    """Find or build tools as `ensure` does, with the progress on a console, by default standard error."""
    with narration(console or Console(stderr=True)) as on_step:
        return ensure(names, on_step=on_step)


class _Live:
    """A live line for each build, with its duration and Go's current action, below completed builds."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, step: Step) -> None:
        match step:
            case Waiting():
                self._clear("")
                self._show("", _waiting(step))
            case Started():
                self._clear("")
                self._show(step.name, _started(step))
            case Worked() if step.name in self._tasks:
                self._progress.update(self._tasks[step.name], line=step.line)
            case Worked():
                pass
            case Finished():
                self._clear(step.name)
                self._print(_finished(step))
            case NotDownloaded():
                self._clear(", ".join(step.names))
                self._print(_not_downloaded(step))
            case _:
                assert_never(step)

    def _print(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _show(self, name: str, description: str) -> None:
        self._tasks[name] = self._progress.add_task(description, total=None, line="")

    def _clear(self, name: str) -> None:
        if name in self._tasks:
            self._progress.remove_task(self._tasks.pop(name))


class _Log:
    """Lines of a log: without one a minute, a build on a busy machine would look as if it had stopped."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun: dict[str, float] = {}
        self._minutes: dict[str, int] = {}

    def __call__(self, step: Step) -> None:
        match step:
            case Waiting():
                line = _waiting(step)
            case Started():
                self._begun[step.name] = time.monotonic()
                line = _started(step)
            case Worked() if step.name in self._begun:
                seconds = time.monotonic() - self._begun[step.name]
                if seconds // 60 <= self._minutes.get(step.name, 0):
                    return
                self._minutes[step.name] = int(seconds // 60)
                line = f"{step.name}: building for {durations.elapsed(seconds)}, now {step.line}"
            case Worked():
                return
            case Finished():
                line = _finished(step)
            case NotDownloaded():
                line = _not_downloaded(step)
            case _:
                assert_never(step)
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _waiting(step: Waiting) -> str:
    since = f"has prepared {step.name} for {durations.elapsed(step.seconds)}"
    whole = f" ({_from_scratch(step.minutes)})" if step.minutes else ""
    return f"Another process {since}; waiting for it{whole}."


def _from_scratch(minutes: float) -> str:
    return f"{durations.rounded(round(minutes) * 60)} from scratch on 2 cores"


def _started(step: Started) -> str:
    name = f"[{step.number}/{step.of}] {step.name}"
    return f"{name}: building, {_from_scratch(step.minutes)}" if step.minutes else f"{name}: fetching"


def _finished(step: Finished) -> str:
    return f"{step.name}: ready after {durations.elapsed(step.seconds)}"


def _not_downloaded(step: NotDownloaded) -> str:
    return f"Built from Go modules instead of downloaded: {', '.join(step.names)} ({step.reason})."
