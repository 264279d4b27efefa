"""Cases of jobs whose every decision is on a grid of time, and the agreement of two runs of a case.

The real controller is some tenths of a second later than the one in virtual time. On the grid this does not
add up: a job ends in a slot that follows from the slot of its admission, no two decisions meet, and Kueue's
own timers are between the slots.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from kueue_jobs import NAMESPACE, Job, Object
from kueue_replay.kueue import (
    Check,
    Event,
    Finish,
    Kueue,
    PodSet,
    PodsReady,
    Submit,
)

STEP = 4.0
"""Seconds between two slots."""

Decision: TypeAlias = Submit | PodsReady | Finish | Check

MOST_SLOTS = 500
"""A case has ended before."""


@dataclass(frozen=True, slots=True)
class Case:
    """Queues and jobs.

    Attributes:
        objects: returns its manifests, whose names begin with a prefix.
        jobs: its jobs, named by their number; times and durations are multiples of the step.
        ready: slots until the pods of a job are ready, by its number and attempt; None: never.
        provisioned: whether a ProvisioningRequest succeeds, by the number of its job and attempt.
    """

    objects: Callable[[str], list[Object]]
    jobs: Sequence[Job]
    ready: Callable[[int, int], int | None] = lambda _job, _attempt: 0
    provisioned: Callable[[int, int], bool] = lambda _job, _attempt: True


def jobs(
    total: int,
    seed: int,
    queues: Sequence[str],
    *,
    slots: tuple[int, int] = (3, 9),
    sizes: Sequence[int] = (1, 2),
    priorities: Sequence[int] = (0,),
) -> list[Job]:
    """Return jobs in every other slot, which leaves the others to their ends."""
    random = Random(seed)  # noqa: S311
    return [
        Job(
            2 * STEP * number,
            random.choice(queues),
            random.choice(sizes),
            STEP * random.randint(*slots),
            random.choice(priorities),
        )
        for number in range(total)
    ]


class Script:
    """Decisions about the jobs of a case: at most one in a slot, and the same ones for the same events.

    Args:
        case: the case.
        prefix: prefix of the names of its jobs and queues.
    """

    def __init__(self, case: Case, prefix: str) -> None:
        self._case, self._prefix = case, prefix
        self._attempts: Counter[str] = Counter()
        self._evictions: Counter[str] = Counter()
        self._unended = {f"{prefix}{number}" for number in range(len(case.jobs))}
        self._due: list[tuple[int, int, int, Decision]] = []
        for number, job in enumerate(case.jobs):
            pods = [PodSet("main", 1, {"cpu": str(job.cpus)})]
            queue = f"{NAMESPACE}/{prefix}{job.queue}"
            submitted = Submit(0, f"{prefix}{number}", queue, pods, job.priority)
            self._due.append((int(job.at / STEP), number, -1, submitted))

    @property
    def ended(self) -> bool:
        """True once all jobs have ended or are deactivated."""
        return not self._unended

    def ready_at_once(self, job: str, attempt: int) -> bool:
        """Return whether the pods of an admitted job are ready without a decision."""
        return self._case.ready(self.number(job), attempt) == 0

    def number(self, job: str) -> int:
        """Return the number of a job."""
        return int(job.removeprefix(self._prefix))

    def decide(self, slot: int) -> Decision | None:
        """Return the decision of a slot: the first that is due, if it does not concern a former admission."""
        due = sorted((item for item in self._due if item[0] <= slot), key=lambda item: item[:3])
        for item in due:
            self._due.remove(item)
            _, _, admission, action = item
            if isinstance(action, Submit) or admission == self._evictions[action.job]:
                return action
        return None

    def follow(self, slot: int, events: Iterable[Event]) -> None:
        """Plan what follows from the events of a slot, in whatever order those of several jobs were."""
        for event in sorted(events, key=lambda event: self.number(event.job)):
            job, number = event.job, self.number(event.job)
            if event.kind == "admitted":
                self._attempts[job] += 1
                ready = self._case.ready(number, self._attempts[job])
                if ready:
                    self._plan(slot + ready, PodsReady(0, job))
                if ready is not None:
                    self._plan(slot + ready + int(self._case.jobs[number].seconds / STEP), Finish(0, job))
            elif event.kind == "check":
                state = "Ready" if self._case.provisioned(number, event.attempt) else "Failed"
                self._plan(slot + 1, Check(0, job, event.check, state))
            elif event.kind == "evicted":
                self._evictions[job] += 1
            elif event.kind in {"finished", "deactivated"}:
                self._unended.discard(job)

    def _plan(self, slot: int, action: PodsReady | Finish | Check) -> None:
        self._due.append((slot, self.number(action.job), self._evictions[action.job], action))


class Side(Protocol):
    """Kueue in virtual or in real time."""

    def act(self, action: Decision) -> None:
        """Carry out a decision."""
        ...

    def events(self, until: float) -> list[Event]:
        """Let time pass until the end of a slot, and return its events."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """An event.

    Attributes:
        slot: the slot in which it happened.
        at: seconds from the start.
        what: its phase, the number of its job, and the flavor.
    """

    slot: int
    at: float
    what: tuple[str, int, str]


def run(script: Script, side: Side) -> list[Row]:
    """Let a side run a case until all jobs have ended."""
    rows: list[Row] = []
    for slot in range(MOST_SLOTS):
        action = script.decide(slot)
        if action is not None:
            side.act(replace(action, at=slot * STEP))
        events = side.events((slot + 1) * STEP)
        script.follow(slot, events)
        for event in events:
            flavor = event.flavors["main"]["cpu"] if event.kind in {"reserved", "admitted"} else ""
            rows.append(Row(slot, event.at, (event.kind, script.number(event.job), flavor)))
        if script.ended:
            return rows
    raise AssertionError("jobs have not ended")


TIE = 1.0
"""Seconds within which the order of events is random."""


class _Virtual:
    def __init__(self, kueue: Kueue, script: Script, extensions: Iterable[float]) -> None:
        self._kueue, self._script, self._extensions = kueue, script, iter(extensions)
        self._late = 0.0
        self._attempts: Counter[str] = Counter()

    def act(self, action: Decision) -> None:
        self._kueue.add(replace(action, at=action.at + self._late))

    def events(self, until: float) -> list[Event]:
        events: list[Event] = []

        def follow(event: Event) -> Iterable[PodsReady]:
            events.append(event)
            if event.kind == "admitted":
                self._attempts[event.job] += 1
                if self._script.ready_at_once(event.job, self._attempts[event.job]):
                    yield PodsReady(event.at, event.job)

        self._late += next(self._extensions, 0.0)
        self._kueue.run(follow, until=until + self._late - 0.001)
        return events


def in_virtual_time(
    program: Path,
    case: Case,
    configuration: Mapping[str, Any],
    shared: Iterable[Object] = (),
    extensions: Iterable[float] = (),
) -> list[Row]:
    """Run a case in virtual time.

    Args:
        program: the program.
        case: the case.
        configuration: Kueue's configuration.
        shared: objects that all cases share.
        extensions: seconds by which each slot is longer than the step, as it was in real time.
    """
    script = Script(case, "")
    with Kueue(program, [*shared, *case.objects("")], configuration) as kueue:
        return run(script, _Virtual(kueue, script, extensions))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Events of two runs.

    Attributes:
        same: number of events that are the same in both, in the same slot and order.
        events: number of events in the longer one, without ties.
        ties: number of events that are in another order within a second.
    """

    same: int
    events: int
    ties: int

    def __str__(self) -> str:
        """Return the cells of a table."""
        return f"{self.same} of {self.events} | {self.ties}"


def agreement(first: Sequence[Row], second: Sequence[Row]) -> Agreement:
    """Compare two runs of a case."""
    same = events = ties = 0
    for slot in range(max(first[-1].slot, second[-1].slot) + 1):
        ours, theirs = ([row for row in rows if row.slot == slot] for rows in (first, second))
        common = Counter(row.what for row in ours) & Counter(row.what for row in theirs)
        pairs = list(zip(_of(ours, common), _of(theirs, common), strict=True))
        swapped = [pair for pair in pairs if pair[0].what != pair[1].what]
        tied = bool(swapped) and all(
            max(row.at for row in side) - min(row.at for row in side) <= TIE
            for side in zip(*swapped, strict=True)
        )
        ties += len(swapped) if tied else 0
        events += max(len(ours), len(theirs)) - (len(swapped) if tied else 0)
        same += len(pairs) - len(swapped)
    return Agreement(same, events, ties)


def _of(rows: Iterable[Row], wanted: Counter[tuple[str, int, str]]) -> list[Row]:
    left = wanted.copy()
    kept: list[Row] = []
    for row in rows:
        if left[row.what]:
            left[row.what] -= 1
            kept.append(row)
    return kept
