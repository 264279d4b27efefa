"""Progress of a build on the terminal."""

from io import StringIO

import pytest
from rich.console import Console

from ebbtide_rehearsal.tools.items import Finished, Started, Step, Waiting, Worked
from ebbtide_rehearsal.tools.progress import narration

_STEPS: list[Step] = [
    Waiting("kwok", 9, 4),
    Worked("kwok", "go: downloading something"),
    Started("kwok, kueue", 1, 3, 2),
    Worked("kwok, kueue", "sigs.k8s.io/kwok/cmd/kwok"),
    Finished("kwok, kueue", 125.4),
    Started("kueue-crds", 2, 3, 0),
    Finished("kueue-crds", 1.6),
    Started("kube-scheduler", 3, 3, 0.1),
    Finished("kube-scheduler", 7),
]


def _shown(*, terminal: bool) -> str:
    file = StringIO()
    with narration(Console(file=file, force_terminal=terminal, width=60)) as say:
        for step in _STEPS:
            say(step)
    return file.getvalue()


def test_a_log_gets_a_line_for_each_start_and_end() -> None:
    """Never broken, and none for every package."""
    assert _shown(terminal=False).splitlines() == [
        "Another process has prepared kwok for 9 s; waiting for it (4 minutes from scratch on 2 cores).",
        "[1/3] kwok, kueue: building, 2 minutes from scratch on 2 cores",
        "kwok, kueue: ready after 2 min 5 s",
        "[2/3] kueue-crds: fetching",
        "kueue-crds: ready after 2 s",
        "[3/3] kube-scheduler: building, less than a minute from scratch on 2 cores",
        "kube-scheduler: ready after 7 s",
    ]


@pytest.mark.parametrize("line", ["kwok, kueue: ready after 2 min 5 s", "kube-scheduler: ready after 7 s"])
def test_a_terminal_keeps_what_is_done(line: str) -> None:
    """Above the line that moves."""
    assert line in _shown(terminal=True)
