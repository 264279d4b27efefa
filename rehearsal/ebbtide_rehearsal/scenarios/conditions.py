"""Expectations of a rehearsal, evaluated by pure functions on a snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BeforeValidator, Field, NonNegativeFloat, model_validator

from ebbtide.declaration.model.base import Count, Declared
from ebbtide_rehearsal.cloud.store import Event

ENDED_RUNS = {"Succeeded": "succeeded", "Failed": "failed", "Error": "failed"}
"""Argo's phases of a run that has ended."""


class Range(Declared):
    """An expected number: `3`, or `{min: 1, max: 4}`."""

    min: Count = 0
    """Minimum."""
    max: Count | None = None
    """Maximum."""

    def holds(self, number: int) -> bool:
        """Check that a number is in the range."""
        return self.min <= number and (self.max is None or number <= self.max)

    def __str__(self) -> str:
        if self.min == self.max:
            return str(self.min)
        return f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"


def _range(value: object) -> object:
    return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[Range, BeforeValidator(_range, json_schema_input_type=int | Range)]


class Jobs(Declared):
    """Submitted Jobs and TrainJobs by status, optionally filtered by name."""

    name: str = "*"
    """Name pattern; `*` and `?` as in file names."""
    succeeded: Number | None = None
    """Complete."""
    failed: Number | None = None
    """Failed permanently."""
    active: Number | None = None
    """With a pod that has not terminated."""
    suspended: Number | None = None
    """Suspended in a queue."""


class Indexes(Declared):
    """Indexes of submitted sweeps."""

    name: str = "*"
    """Name pattern; `*` and `?` as in file names."""
    succeeded: Number | None = None
    """Complete."""
    failed: Number | None = None
    """Failed permanently."""


class Pipelines(Declared):
    """Pipeline runs by status."""

    succeeded: Number | None = None
    """Succeeded."""
    failed: Number | None = None
    """Ended with a failed step."""
    running: Number | None = None
    """Not ended."""


class Step(Declared):
    """The pods of a pipeline's step."""

    name: str
    """The step's name in the pipeline."""
    ran_on: list[str]
    """Its pods ran only on these pools, and at least one ran; `*` and `?` as in file names."""
    pods: Number | None = None
    """Number of pods: one for each attempt."""


class Happened(Declared):
    """An event in the timeline."""

    kind: str = "*"
    """Kind pattern; `*` and `?` as in file names."""
    says: str = ""
    """Text that the event contains."""
    times: Number = Range(min=1)
    """Number of occurrences so far."""


class Condition(Declared):
    """An expectation; omitted fields are not checked."""

    jobs: Jobs | None = None
    """Number of Jobs by status."""
    indexes: Indexes | None = None
    """Number of sweep indexes by status."""
    pipelines: Pipelines | None = None
    """Number of pipeline runs by status."""
    steps: tuple[Step, ...] = ()
    """Pools of pipeline steps, and number of pods."""
    failures_counted: Number | None = None
    """Pods whose failure counts against their Job's backoff limit; a disruption does not."""
    nodes: dict[str, Number] = Field(default_factory=dict[str, Number])
    """Number of nodes per pool; `*` and `?` as in file names, summed over matches."""
    ran_on: list[str] | None = None
    """Pools of each Job's pods: all ran on these pools, and at least one ran; `*` and `?` as in file
    names.
    """
    waiting: str | None = None
    """Text in the reason for a pending pod or Workload, or for the refusal of a Job's pods."""
    log: str | None = None
    """Text in the log of a pod that ran as a process."""
    happened: tuple[Happened, ...] = ()
    """Events in the timeline."""
    costs_at_most: NonNegativeFloat | None = None
    """Maximum cost of nodes so far in US dollars, in simulated time."""

    @model_validator(mode="after")
    def _something(self) -> "Condition":
        if not self.model_fields_set:
            raise ValueError("Nothing is expected. Write jobs: {succeeded: 1}, for example.")
        return self


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """A Job's status.

    Attributes:
        succeeded: complete.
        failed: failed permanently.
        active: with a pod that has not terminated.
        suspended: not started.
        failures: pods whose failure counts against its backoff limit.
        indexes_succeeded: of a sweep.
        indexes_failed: of a sweep.
    """

    name: str
    succeeded: bool = False
    failed: bool = False
    active: bool = False
    suspended: bool = False
    failures: int = 0
    indexes_succeeded: int = 0
    indexes_failed: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot of a cluster.

    Attributes:
        nodes: the number of nodes of each pool.
        ran_on: the pools on which pods of Jobs have run.
        waits: reasons for pending pods and workloads, from the scheduler, the autoscaler and the queue.
        logs: output of pods that ran as processes.
        cost: US dollars so far.
        runs: the phase of each pipeline run.
        steps: by pipeline step, the pool of each pod that ran, by its uid.
        running: names of the Jobs with a running pod.
    """

    jobs: Sequence[ObservedJob]
    nodes: Mapping[str, int]
    ran_on: frozenset[str]
    waits: Sequence[str]
    logs: str
    events: Sequence[Event]
    cost: float
    runs: Sequence[str] = ()
    steps: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    running: frozenset[str] = frozenset()


def misses(condition: Condition, snapshot: Observation) -> list[str]:
    """List the unmet expectations of a condition, a sentence each."""
    return [
        *_jobs(condition, snapshot),
        *_pipelines(condition, snapshot),
        *_nodes(condition, snapshot),
        *_words(condition, snapshot),
        *_past(condition, snapshot),
    ]


def _jobs(condition: Condition, snapshot: Observation) -> Iterator[str]:
    if condition.jobs:
        named = [job for job in snapshot.jobs if fnmatchcase(job.name, condition.jobs.name)]
        for state in ("succeeded", "failed", "active", "suspended"):
            number = sum(getattr(job, state) for job in named)
            yield from _miss(getattr(condition.jobs, state), number, f"Jobs {state}")
    if condition.indexes:
        named = [job for job in snapshot.jobs if fnmatchcase(job.name, condition.indexes.name)]
        for state in ("succeeded", "failed"):
            number = sum(getattr(job, f"indexes_{state}") for job in named)
            yield from _miss(getattr(condition.indexes, state), number, f"indexes {state}")
    failures = sum(job.failures for job in snapshot.jobs)
    yield from _miss(condition.failures_counted, failures, "failures counted against retries")


def _pipelines(condition: Condition, snapshot: Observation) -> Iterator[str]:
    if condition.pipelines:
        states = [ENDED_RUNS.get(phase, "running") for phase in snapshot.runs]
        for state in ("succeeded", "failed", "running"):
            yield from _miss(getattr(condition.pipelines, state), states.count(state), f"pipelines {state}")
    for step in condition.steps:
        pools = snapshot.steps.get(step.name, {}).values()
        unexpected = sorted(
            {pool for pool in pools if not any(fnmatchcase(pool, name) for name in step.ran_on)}
        )
        if not pools:
            yield f"Step {step.name} has not run."
        elif unexpected:
            yield f"Step {step.name} ran on {', '.join(unexpected)}, not only on {', '.join(step.ran_on)}."
        yield from _miss(step.pods, len(pools), f"pods of step {step.name}")


def _nodes(condition: Condition, snapshot: Observation) -> Iterator[str]:
    for pattern, expected in condition.nodes.items():
        number = sum(count for pool, count in snapshot.nodes.items() if fnmatchcase(pool, pattern))
        yield from _miss(expected, number, f"nodes of {pattern}")
    if condition.ran_on is not None:
        unexpected = {
            pool for pool in snapshot.ran_on if not any(fnmatchcase(pool, name) for name in condition.ran_on)
        }
        if unexpected:
            yield f"Pods ran on {', '.join(sorted(unexpected))}, not only on {', '.join(condition.ran_on)}."


def _words(condition: Condition, snapshot: Observation) -> Iterator[str]:
    expected = condition.waiting
    if expected is not None and not any(expected.lower() in text.lower() for text in snapshot.waits):
        reasons = " | ".join(snapshot.waits) or "none is pending"
        yield f"No pod or Workload is pending because of “{expected}”: {reasons}."
    if condition.log is not None and condition.log not in snapshot.logs:
        yield f"No log contains “{condition.log}”."


def _past(condition: Condition, snapshot: Observation) -> Iterator[str]:
    for happened in condition.happened:
        number = sum(
            fnmatchcase(event.kind, happened.kind) and happened.says.lower() in event.text.lower()
            for event in snapshot.events
        )
        text = f" saying “{happened.says}”" if happened.says else ""
        yield from _miss(happened.times, number, f"events {happened.kind}{text}")
    if condition.costs_at_most is not None and snapshot.cost > condition.costs_at_most:
        yield f"Nodes cost ${snapshot.cost:.2f} so far, more than ${condition.costs_at_most:.2f}."


def _miss(expected: Range | None, number: int, subject: str) -> Iterator[str]:
    if expected is not None and not expected.holds(number):
        yield f"{number} {subject}, expected {expected}."
