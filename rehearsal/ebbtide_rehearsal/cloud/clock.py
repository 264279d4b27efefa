"""Time in a rehearsal, which may run faster than the wall clock if no real component depends on it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event


@dataclass(frozen=True, slots=True)
class Clock:
    """Simulated time of a rehearsal. The cloud's durations (starting a node, waiting before a removal) and
    its bill use it; Kubernetes and Kueue use the wall clock.

    Attributes:
        started: wall-clock time of the start, seconds since the epoch.
        speed: simulated seconds per second.
        wall: source of the wall-clock time.
    """

    started: float
    speed: float = 1.0
    wall: Callable[[], float] = field(default=time.time, compare=False)

    def now(self) -> float:
        """Return simulated seconds since the start."""
        return (self.wall() - self.started) * self.speed

    def real(self, seconds: float) -> float:
        """Convert simulated seconds to wall-clock seconds."""
        return seconds / self.speed

    def wait(self, seconds: float, until: Event) -> bool:
        """Wait for simulated seconds or for the event; return whether the event was set."""
        return until.wait(self.real(seconds))


@dataclass(slots=True)
class ClusterTime:
    """Time of the cluster in a scenario: simulated while the scenario waits for the cluster, this machine's
    while a step works, such as `pulumi up`. Otherwise a step of a minute would be an hour at the usual speed.

    Attributes:
        speed: simulated seconds per second.
        work: start and end of each step that works, simulated seconds.
    """

    speed: float
    work: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def at(self, simulated: float) -> float:
        """Return the cluster's time at a simulated time, seconds since the start."""
        working = sum(max(0.0, min(simulated, end) - start) for start, end in self.work)
        return simulated - working * (1 - 1 / self.speed)
