"""Ctrl-C while the engine works: a terminal sends it to the engine as well, which then ends what it has begun
and begins nothing more (Pulumi docs, `pulumi cancel`). Whoever started the engine waits for it.
"""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Interrupts:
    """Whether there was one."""

    seen: bool = False


@contextmanager
def patience(say: Callable[[], None]) -> Generator[Interrupts]:
    """Note Ctrl-C in place of ending at once; only for the main thread.

    Args:
        say: called at the first one.
    """
    interrupts = Interrupts()

    def note(_signal: int, _frame: FrameType | None) -> None:
        if not interrupts.seen:
            interrupts.seen = True
            say()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
