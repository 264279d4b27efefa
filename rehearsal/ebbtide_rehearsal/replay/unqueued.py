"""Work in no queue: its pods are created when it is submitted, and wait for nodes alone."""

from collections.abc import Mapping, Sequence

from ebbtide_rehearsal.replay.decisions import Decision, Scheduler
from ebbtide_rehearsal.replay.mapping import Work


class Unqueued:
    """A scheduler that admits work in no queue at once, and leaves the rest to another."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._unqueued: set[str] = set()
        self._decisions: list[Decision] = []

    def submit(self, at: float, work: Work) -> None:
        """Create a job."""
        if work.queue.is_pool:
            self._unqueued.add(work.name)
            self._decisions.append(Decision("admitted", work.name))
        else:
            self._scheduler.submit(at, work)

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

    def step(self, at: float) -> Sequence[Decision]:
        """Decide until nothing changes at a time."""
        admitted, self._decisions = self._decisions, []
        return [*admitted, *self._scheduler.step(at)]

    def next_time(self) -> float:
        """Return the time of the next retry; infinite for none."""
        return self._scheduler.next_time()

    def pending(self) -> Mapping[str, str]:
        """Return the jobs without quota once nothing more can happen, each with the reason."""
        return self._scheduler.pending()
