"""Garbage collection of a process that records a program."""

import gc
from typing import Final

_THRESHOLD: Final = 500_000


def collect_rarely() -> None:
    """Collect garbage every 500,000 allocations.

    Importing a provider and recording a program create a million objects that live until the process ends.
    At Python's default of 700, collection took a quarter of a preview's time, and a third at exit.
    """
    gc.set_threshold(max(_THRESHOLD, gc.get_threshold()[0]), *gc.get_threshold()[1:])
