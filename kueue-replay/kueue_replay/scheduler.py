"""The scheduler of a replay: the real Kueue, and work in no queue beside it."""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from kueue_replay.cluster import Declaration
from kueue_replay.kueue import Action, Check, Event, Finish, Kueue, PodSet, PodsReady, Submit
from kueue_replay.mapping import Work

_MAIN: Final = "main"
_BLOCK: Final = 1000
"""Number of jobs that Kueue's process receives together, to submit each at its time."""
_TOLERATIONS: Final = ({"operator": "Exists"},)


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of the scheduler.

    Attributes:
        kind: `reserved`: quota is reserved, and an admission check decides; `admitted`: its pods are created;
            `evicted`: its pods are deleted, and it waits again; `deactivated`: it is never admitted again.
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


Schedulers: TypeAlias = Callable[[Declaration], AbstractContextManager[Scheduler]]
"""Starts a scheduler with a declaration's objects."""


class Forwarding:
    """A scheduler that leaves all but its own methods to another."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.submit, self.finish, self.ready = scheduler.submit, scheduler.finish, scheduler.ready
        self.checked, self.next_time = scheduler.checked, scheduler.next_time
        self.pending = scheduler.pending


class Unqueued:
    """A scheduler that admits work in no queue at once, whose pods wait for nodes alone, and leaves the rest
    to another."""

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


class KueueScheduler:
    """Kueue's process, which is given what happens and reports its decisions."""

    def __init__(self, kueue: Kueue, declaration: Declaration) -> None:
        """Schedule the jobs of a declaration."""
        self._kueue, self._declaration = kueue, declaration
        self._submits = deque[Work]()
        self._actions: list[Action] = []
        self._is_due = False
        self._decisions: list[Decision] = []
        self._checks: dict[str, str] = {}
        self._next = math.inf

    def submit(self, work: Work) -> None:
        """Create a job at its time."""
        self._submits.append(work)

    def _submit(self, work: Work) -> Submit:
        """Return a job whose pods tolerate all taints, and select their flavor, or the type of their
        accelerators."""
        shape = work.shape
        requests = {"cpu": f"{shape.cpu}m", "memory": f"{shape.memory}Mi"}
        if shape.gpus:
            requests[shape.resource] = str(shape.gpus)
        selector: Mapping[str, str] = {}
        if work.flavor:
            selector = self._declaration.flavors[work.flavor].labels
        elif work.accelerator:
            selector = self._declaration.selector(work.queue.pools, work.accelerator)
        pods = PodSet(_MAIN, work.pods, requests, selector, _TOLERATIONS)
        return Submit(work.job.submit, work.name, work.queue.name, [pods], work.priority)

    def finish(self, at: float, job: str) -> None:
        """End an admitted job."""
        self._add(Finish(at, job))

    def ready(self, at: float, job: str, *, ready: bool) -> None:
        """Set whether all pods of an admitted job are ready. If they are, a timeout ends and nothing else
        follows: it is sent with the next action."""
        self._add(PodsReady(at, job, ready), due=not ready)

    def checked(self, at: float, job: str, failure: str) -> None:
        """Set the state of a job's ProvisioningRequest."""
        if job in self._checks:
            self._add(Check(at, job, self._checks[job], "Failed" if failure else "Ready"))

    def _add(self, action: Action, *, due: bool = True) -> None:
        self._actions.append(action)
        self._is_due = self._is_due or due

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Let Kueue decide until nothing changes at a time, or until the first decision."""
        if not self._is_due and self.next_time() > at and self.next_time() >= before:
            return ()
        if self._next_submit() <= at:
            block = [self._submits.popleft() for _ in range(min(_BLOCK, len(self._submits)))]
            self._actions += map(self._submit, block)
        self._kueue.add(*self._actions)
        self._actions, self._decisions, self._is_due = [], [], False
        end = self._kueue.run(self._follow, until=at, before=min(before, self._next_submit()))
        self._next = math.inf if end.next is None else end.next
        return self._decisions

    def next_time(self) -> float:
        """Return the time of the next submission or retry; infinite for none."""
        return min(self._next_submit(), self._next)

    def _next_submit(self) -> float:
        """Return the time of the first job that Kueue's process has not received."""
        return self._submits[0].job.submit if self._submits else math.inf

    def pending(self) -> Mapping[str, str]:
        """Return the jobs without quota once nothing more can happen, each with Kueue's reason."""
        return self._kueue.run().pending if self.next_time() == math.inf else {}

    def _follow(self, event: Event) -> Iterable[Action]:
        match event.kind:
            case "check":
                self._checks[event.job] = event.check
                self._decisions.append(Decision("reserved", event.job, event.at, _flavor(event)))
            case "admitted":
                self._decisions.append(Decision("admitted", event.job, event.at, _flavor(event)))
            case "evicted":
                self._decisions.append(Decision("evicted", event.job, event.at, reason=event.reason))
            case "deactivated":
                self._decisions.append(Decision("deactivated", event.job, event.at))
            case _:
                pass
        return ()


def _flavor(event: Event) -> str:
    """Return the flavor of a job's nodes: all resources of a queue have the same flavors."""
    return event.flavors[_MAIN]["cpu"]


def schedulers(program: Path) -> Schedulers:
    """Return a function that starts Kueue with a declaration's objects."""

    @contextmanager
    def start(declaration: Declaration) -> Generator[KueueScheduler]:
        kueue = Kueue(
            program,
            declaration.cluster.objects,
            declaration.cluster.configuration,
            declaration.cluster.namespaces,
            answered=False,
        )
        with kueue:
            yield KueueScheduler(kueue, declaration)

    return start
