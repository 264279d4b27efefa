"""Detection of an announced termination, for training code; it needs only the standard library."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

_Previous = Callable[[int, FrameType | None], Any] | int | None


class Termination:
    """A flag that is set once the process gets a termination signal, so that a loop can save and exit.

    From then on, a pod on a spot or preemptible node has 15 seconds on GKE, and up to 30 on AKS: enough for a
    small checkpoint, not for a large one. Do not rely on it for correctness: also save checkpoints during
    training. Only a plain Job's process gets the signal; in a step of a Kubeflow pipeline the launcher ends
    first (kfp-launcher 2.17.0). The process must be the container's first, or be started with `exec`: a shell
    does not forward signals.

    A previously set handler is called after the flag is set. From the first signal until `stop()`, nothing
    else ends the process: the loop has to exit.

    Raises:
        ValueError: this is not the main thread, the only one in which Python handles signals.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        # A plain attribute: a handler that takes a lock, as threading.Event does, can deadlock with itself.
        self._announced = False
        self._previous: dict[signal.Signals, _Previous] = {}
        for number in signals or (signal.SIGTERM,):
            self._previous[number] = signal.signal(number, self._handle)

    @property
    def announced(self) -> bool:
        """True if the termination was announced."""
        return self._announced

    def stop(self) -> None:
        """Restore the previous handlers."""
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
