"""The interface of a replay's scheduler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ebbtide_rehearsal.replay.mapping import Work


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of the scheduler.

    Attributes:
        kind: `reserved`: quota is reserved, and an admission check decides; `admitted`: its pods are created;
            `evicted`: its pods are deleted, and it waits again; `deactivated`: it is never admitted again.
        job: name of the job.
        at: time of the decision.
        flavor: name of its flavor; empty for an eviction, and for work in no queue.
        reason: reason of an eviction, such as `Preempted`.
    """

    kind: Literal["reserved", "admitted", "evicted", "deactivated"]
    job: str
    at: float
    flavor: str = ""
    reason: str = ""


class Scheduler(Protocol):
    """The scheduler of jobs, on the same virtual clock. Times are seconds and never decrease."""

    def submit(self, work: Work) -> None:
        """Create a job at its time, which may be later; earlier jobs come first."""
        ...

    def finish(self, at: float, job: str) -> None:
        """End an admitted job."""
        ...

    def ready(self, at: float, job: str, *, ready: bool) -> None:
        """Set whether all pods of an admitted job are ready."""
        ...

    def checked(self, at: float, job: str, failure: str) -> None:
        """Set the admission check of a job: ready, or to be retried with the reason of its failure."""
        ...

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Decide until nothing changes at a time; without a decision, go on until the first one before
        another time."""
        ...

    def next_time(self) -> float:
        """Return the time of the next submission or retry; infinite for none."""
        ...

    def pending(self) -> Mapping[str, str]:
        """Return the jobs without quota once nothing more can happen, each with the reason."""
        ...


class Forwarding:
    """A scheduler that leaves all but its own methods to another."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.submit, self.finish, self.ready = scheduler.submit, scheduler.finish, scheduler.ready
        self.checked, self.next_time = scheduler.checked, scheduler.next_time
        self.pending = scheduler.pending
