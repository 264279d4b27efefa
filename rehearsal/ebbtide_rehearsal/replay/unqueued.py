"""Work in no queue: its pods are created when it is submitted, and wait for nodes alone."""

import math
from collections import deque
from collections.abc import Mapping, Sequence

from ebbtide_rehearsal.replay.decisions import Decision, Scheduler
from ebbtide_rehearsal.replay.mapping import Work


class Unqueued:
    """A scheduler that admits work in no queue at once, and leaves the rest to another."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._unqueued: set[str] = set()
        self._submits = deque[Work]()

    def submit(self, work: Work) -> None:
        """Create a job at its time."""
        if work.queue.is_pool:
            self._unqueued.add(work.name)
            self._submits.append(work)
        else:
            self._scheduler.submit(work)

    def finish(self, at: float, job: str) -> None:
        """End an admitted job."""
        if job not in self._unqueued:
            self._scheduler.finish(at, job)

    def ready(self, at: float, job: str, *, ready: bool) -> None:
        """Set whether all pods of an admitted job are ready."""
        if job not in self._unqueued:
            self._scheduler.ready(at, job, ready=ready)

    def checked(self, at: float, job: str, failure: str) -> None:
        """Set the admission check of a job."""
        self._scheduler.checked(at, job, failure)

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Admit what is submitted, and let the other decide the rest."""
        admitted: list[Decision] = []
        while self._next_submit() <= at:
            admitted.append(Decision("admitted", self._submits.popleft().name, at))
        before = at if admitted else min(before, self._next_submit())
        return [*admitted, *self._scheduler.step(at, before)]

    def next_time(self) -> float:
        """Return the time of the next submission or retry; infinite for none."""
        return min(self._next_submit(), self._scheduler.next_time())

    def _next_submit(self) -> float:
        return self._submits[0].job.submit if self._submits else math.inf

    def pending(self) -> Mapping[str, str]:
        """Return the jobs without quota once nothing more can happen, each with the reason."""
        return self._scheduler.pending()
