"""Ctrl-C during an engine run. A terminal also signals the engine, which finishes pending operations and
starts no others (Pulumi docs, `pulumi cancel`). The parent has to wait for the engine: the Automation API
does not, and its output readers each end with a traceback (pulumi 3.259,
sdk/python/lib/pulumi/automation/_cmd.py)."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Interrupts:
    """A record of interrupts."""

    received: bool = False


@contextmanager
def deferred_interrupts(first: Callable[[], None]) -> Generator[Interrupts]:
    """Record Ctrl-C instead of terminating immediately.

    Nothing is recorded outside the main thread, or if the parent process ignores SIGINT, as for a shell's
    background jobs.

    Args:
        first: called on the first interrupt.
    """
    interrupts = Interrupts()

    def record(_signal: int, _frame: FrameType | None) -> None:
        if not interrupts.received:
            interrupts.received = True
            first()

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signal.signal(signal.SIGINT, record)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
