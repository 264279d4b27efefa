"""Time in a rehearsal, which may run faster than the wall clock where no real component minds."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event


@dataclass(frozen=True, slots=True)
class Clock:
    """Simulated time of a rehearsal: what the cloud takes (starting a node, waiting before one is removed) is
    counted in it, and so is what the cloud bills. Kubernetes and Kueue go by the wall clock.

    Attributes:
        started: the wall clock's time at the start, in seconds since the epoch.
        speed: simulated seconds in a second.
        wall: where the wall clock's time comes from.
    """

    started: float
    speed: float = 1.0
    wall: Callable[[], float] = field(default=time.time, compare=False)

    def now(self) -> float:
        """Return simulated seconds since the start."""
        return (self.wall() - self.started) * self.speed

    def real(self, seconds: float) -> float:
        """Convert simulated seconds to seconds of the wall clock."""
        return seconds / self.speed

    def wait(self, seconds: float, until: Event) -> bool:
        """Wait for simulated seconds, or for the event; whether it was the event."""
        return until.wait(self.real(seconds))
