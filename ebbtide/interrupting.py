"""Ctrl-C while the engine works: a terminal sends it to the engine as well, which then ends what it has begun
and begins nothing more (Pulumi docs, `pulumi cancel`). Whoever started the engine waits for it: the
Automation API does not, and its readers of the engine's output each end with a traceback (pulumi 3.259,
sdk/python/lib/pulumi/automation/_cmd.py).
"""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Interrupts:
    """Whether there was one."""

    seen: bool = False


@contextmanager
def patience(first: Callable[[], None]) -> Generator[Interrupts]:
    """Note Ctrl-C in place of ending at once.

    Outside of the main thread, and where whoever started this process has interruptions ignored, as a shell
    does with what it runs in the background, there is nothing to note.

    Args:
        first: called at the first one.
    """
    interrupts = Interrupts()

    def note(_signal: int, _frame: FrameType | None) -> None:
        if not interrupts.seen:
            interrupts.seen = True
            first()

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
