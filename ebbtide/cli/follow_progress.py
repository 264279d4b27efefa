"""Progress of a workload: a live line on a terminal, a line per change in a log."""

import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import Object, condition, disrupted, phase_of, text
from ebbtide.placement import Profile
from ebbtide.values import clock
from ebbtide.work.errors import ClusterError
from ebbtide.work.evidence import OBVIOUS, Cause, read_evidence
from ebbtide.work.progress import Phase, Progress, cause_of, failure_text, progress_line

_WAITING: Final = frozenset({Phase.QUEUED, Phase.WAITING, Phase.STARTING})
_MISSING_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_AGAIN: Final = 15.0
"""Seconds after which the cause of the same state is read again: what holds the quota changes."""


@contextmanager
def narration(console: Console) -> Generator[Callable[[str], None]]:
    """Return a callback for changes of a Job's state.

    Args:
        console: the output, with a live line on a terminal, else a line per change.
    """
    if not console.is_terminal:
        yield changes(console)
        return
    with Bar(
        SpinnerColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None)
        yield lambda line: progress.update(task, description=line)


class ProgressLines:
    """Show a workload's progress, with the cause of its waiting as `ebbtide why` explains it."""

    def __init__(
        self,
        api: Api,
        name: str,
        namespace: str,
        profile: Profile | None,
        show: Callable[[str], object],
        note: Callable[[str], object] | None = None,
        before_end: Callable[[], object] = lambda: None,
    ) -> None:
        """Show the progress of a workload.

        Args:
            api: the cluster's API.
            profile: the cluster's profile.
            show: called with each line.
            note: called with what has to remain: why a running workload waits again; default: `show`.
            before_end: called before the end is shown, as for the last lines of the log.
        """
        self._api, self._name, self._namespace, self._profile = api, name, namespace, profile
        self._show, self._note = show, note or show
        self._before_end = before_end
        self._phase: Phase | None = None
        self._state: tuple[str, str] | None = None
        self._cause: Cause | None = None
        self._read = 0.0

    def __call__(self, progress: Progress) -> None:
        """Show a state."""
        if progress.phase in _WAITING:
            state = progress.phase.value, progress.reason
            if state != self._state or time.monotonic() > self._read + _AGAIN:
                self._state, self._cause, self._read = state, self._find(), time.monotonic()
            if self._cause and self._cause.reason not in OBVIOUS:
                progress = replace(progress, reason=str(self._cause).rstrip("."))
        else:
            self._state = None
        if progress.over:
            self._before_end()
        again = self._phase is Phase.RUNNING and progress.phase in _WAITING
        self._phase = progress.phase
        (self._note if again else self._show)(progress_line(progress))

    def _find(self) -> Cause | None:
        try:
            return cause_of(read_evidence(self._api, self._name, self._namespace, clock.now(), self._profile))
        except ClusterError:  # the state has the controllers' own reason
            return None


def ended_pods(note: Callable[[str], object]) -> Callable[[Sequence[Object]], None]:
    """Return a function that notes, once for each pod, why attempts failed or were disrupted."""
    known = set[str]()

    def report(pods: Sequence[Object]) -> None:
        for pod in pods:
            uid, is_disrupted = pod["metadata"]["uid"], disrupted(pod)
            if uid in known or not (is_disrupted or phase_of(pod) == "Failed"):
                continue
            known.add(uid)
            cause = condition(pod, "DisruptionTarget") if is_disrupted else {}
            why = text(cause, "message") or text(cause, "reason") or failure_text(pod)
            note(f"Pod {pod['metadata']['name']} ended: {why.rstrip('.')}.")

    return report


class MissingModules:
    """Pass on the lines of logs, and collect the modules that Python has not found."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show, self._names = show, dict[str, None]()

    def __call__(self, line: str) -> None:
        """Read a line."""
        if found := _MISSING_MODULE.search(line):
            self._names[found[1]] = None
        self._show(line)

    def hints(self, end: Progress) -> Sequence[str]:
        """Return how a run that has failed gets the packages of the modules."""
        names = " ".join(self._names)
        hint = (
            f"The image does not have {names}. --setup 'python -m pip install {names}' installs packages of "
            "such names before the command; or use an image that has them (--image)."
        )
        return [hint] if names and end.phase is Phase.FAILED else []


def changes(console: Console) -> Callable[[str], None]:
    """Return a function that prints plain lines without consecutive duplicates."""
    last = ""

    def show(line: str) -> None:
        nonlocal last
        if line != last:
            last = line
            console.print(line, markup=False, soft_wrap=True)
            console.file.flush()

    return show
