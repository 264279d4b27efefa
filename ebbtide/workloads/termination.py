"""Knowing that the end was announced, for training code; the standard library is all it needs."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

_Previous = Callable[[int, FrameType | None], Any] | int | None


class Termination:
    """A flag that is up once the process was told to end, so that a loop can save and leave.

    On GKE a pod has 15 seconds from then on a spot or preemptible node, on AKS up to 30: enough for a small
    checkpoint, not for a large one. It is a help, never what correctness rests on: checkpoints are saved as
    the training goes, too. Only a plain Job's process is told; in a step of a Kubeflow pipeline the launcher
    ends first (kfp-launcher 2.17.0). The process must be the container's first, or be started with `exec`:
    a shell passes nothing on.

    A handler that was set before is called after the flag is up. From the first signal until `stop()`,
    nothing else ends the process: leaving is up to the loop.

    Args:
        signals: what announces the end.

    Raises:
        ValueError: this is not the main thread, the only one that Python lets handle signals.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        # A plain attribute: a handler that takes a lock, as threading.Event does, may wait for itself.
        self._announced = False
        self._previous: dict[signal.Signals, _Previous] = {}
        for number in signals or (signal.SIGTERM,):
            self._previous[number] = signal.signal(number, self._handle)

    @property
    def announced(self) -> bool:
        """True if the termination was announced."""
        return self._announced

    def stop(self) -> None:
        """Put back the handlers that were there before."""
        for number, previous in self._previous.items():
            signal.signal(number, signal.SIG_DFL if previous is None else previous)
        self._previous = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._announced = True
        previous = self._previous.get(signal.Signals(number))
        if callable(previous):
            previous(number, frame)
