"""Ctrl-C while the engine runs."""

import contextlib
import signal
import threading
from collections.abc import Callable, Generator
from types import FrameType


@contextlib.contextmanager
def in_order(end: Callable[[], None]) -> Generator[None]:
    """Hold an interruption back until what runs has ended by itself, since it is made to.

    The Automation API leaves its readers of the engine's output with a closed file when it is interrupted,
    and each of them ends with a traceback. Source: pulumi 3.259, sdk/python/lib/pulumi/automation/_cmd.py.

    Args:
        end: makes what runs end; it is called once.

    Raises:
        KeyboardInterrupt: there was an interruption, and what ran has ended.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # nobody interrupts this, or whoever started it has a way of their own
        return
    interrupted = False

    def hold(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            end()

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if interrupted:
            raise KeyboardInterrupt
