"""Ctrl-C, deferred during an engine run and repeated elsewhere; and the end by other signals.

A terminal also signals the engine, which finishes pending operations and starts no others (Pulumi docs,
`pulumi cancel`). The parent has to wait for the engine: the Automation API does not, and its output readers
each end with a traceback (pulumi 3.259, sdk/python/lib/pulumi/automation/_cmd.py).
"""

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

_SOON: Final = 0.1
_AGAIN: Final = 2.0
"""Seconds between two KeyboardInterrupts, more than a command takes to end."""


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

    if not _is_interruptible():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, record)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def repeated_interrupts() -> Generator[None]:
    """Repeat the KeyboardInterrupt of a Ctrl-C until it ends the block.

    Python loses one that is raised within a callback, as of a weak reference at the end of an import
    (docs.python.org, `signal`, "Note on Signal Handlers and Exceptions").

    Raises:
        KeyboardInterrupt: the block was interrupted, also if it ended with another error for that.
    """
    if not (_is_interruptible() and hasattr(signal, "setitimer")):
        yield
        return

    interrupts = Interrupts()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        interrupts.received = True
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGALRM)}
    try:
        yield
    except Exception as error:
        if is_for_interrupt(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        if interrupts.received:  # otherwise the timer may be another's
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def is_for_interrupt(error: Exception) -> bool:
    """Check that an error stands for a Ctrl-C.

    Python 3.11 raises a RuntimeError for one within a `__set_name__`, as of a dataclass's field during an
    import (cpython#77757).
    """
    return isinstance(error.__cause__, KeyboardInterrupt)


@contextmanager
def ending_signals() -> Generator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP, which would otherwise end the process without its `finally`
    blocks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def keep_interrupts() -> None:
    """Keep tracebacks of a Ctrl-C from the terminal: of one that Python loses within a callback, which is
    repeated, and of the threads that read the output of an engine that has ended for it."""

    def unraisable(lost: "sys.UnraisableHookArgs") -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            threading.Timer(_SOON, _thread.interrupt_main).start()
        else:
            sys.__unraisablehook__(lost)

    def in_thread(ended: threading.ExceptHookArgs) -> None:
        if not issubclass(ended.exc_type, OSError | ValueError):  # of a closed file
            threading.__excepthook__(ended)

    sys.unraisablehook, threading.excepthook = unraisable, in_thread


def _is_interruptible() -> bool:
    """Check that Ctrl-C reaches this thread."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return not ignored and threading.current_thread() is threading.main_thread()
