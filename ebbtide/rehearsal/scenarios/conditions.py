"""What may be expected of a rehearsal, and whether it is so: pure functions of what is seen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BeforeValidator, Field, NonNegativeFloat, model_validator

from ebbtide.model.base import Count, Declared
from ebbtide.rehearsal.cloud.store import Event


class Range(Declared):
    """A number that is expected: `3`, or `{min: 1, max: 4}`."""

    min: Count = 0
    """At least."""
    max: Count | None = None
    """At most."""

    def holds(self, number: int) -> bool:
        """Whether a number is in it."""
        return self.min <= number and (self.max is None or number <= self.max)

    def __str__(self) -> str:
        if self.min == self.max:
            return str(self.min)
        return f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"


def _range(value: object) -> object:
    return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[Range, BeforeValidator(_range, json_schema_input_type=int | Range)]


class Jobs(Declared):
    """Jobs and TrainJobs that were submitted, counted by how they are; those of a name alone where one is
    given."""

    name: str = "*"
    """Of which name; `*` and `?` as in file names."""
    succeeded: Number | None = None
    """Complete."""
    failed: Number | None = None
    """Failed for good."""
    active: Number | None = None
    """With a pod that has not ended."""
    suspended: Number | None = None
    """Waiting in a queue."""


class Indexes(Declared):
    """Indexes of sweeps that were submitted."""

    name: str = "*"
    """Of which name; `*` and `?` as in file names."""
    succeeded: Number | None = None
    """Complete."""
    failed: Number | None = None
    """Failed for good."""


class Pipelines(Declared):
    """Runs of pipelines, counted by how they are."""

    succeeded: Number | None = None
    """Ended well."""
    failed: Number | None = None
    """Ended with a failed step."""
    running: Number | None = None
    """Not ended."""


class Step(Declared):
    """The pods of a pipeline's step."""

    name: str
    """The step's name in the pipeline."""
    ran_on: list[str]
    """Every pod of it that ran did so on one of these pools, and one did; `*` and `?` as in file names."""
    pods: Number | None = None
    """Number of pods: one for each attempt."""


class Happened(Declared):
    """Something in the timeline."""

    kind: str = "*"
    """What sort of thing; `*` and `?` as in file names."""
    says: str = ""
    """Words of it."""
    times: Number = Range(min=1)
    """How often so far."""


class Condition(Declared):
    """What is expected; what is left out does not matter."""

    jobs: Jobs | None = None
    """How many Jobs are how."""
    indexes: Indexes | None = None
    """How many indexes of sweeps are how."""
    pipelines: Pipelines | None = None
    """Number of pipeline runs by status."""
    steps: tuple[Step, ...] = ()
    """Pools that steps of pipelines ran on, and number of pods."""
    failures_counted: Number | None = None
    """Pods whose failure counts against their Job's retries; a disruption does not."""
    nodes: dict[str, Number] = Field(default_factory=dict[str, Number])
    """How many nodes a pool has; `*` and `?` as in file names, counted together."""
    ran_on: list[str] | None = None
    """Every pod of a Job that ran did so on one of these pools; `*` and `?` as in file names."""
    waiting: str | None = None
    """Words of why a pod or a Job waits, or why pods of a Job are refused."""
    log: str | None = None
    """Words in the log of a pod that ran as a process."""
    happened: tuple[Happened, ...] = ()
    """What is in the timeline."""
    costs_at_most: NonNegativeFloat | None = None
    """US dollars that nodes have cost so far, in simulated time."""

    @model_validator(mode="after")
    def _something(self) -> "Condition":
        if not self.model_fields_set:
            raise ValueError("nothing is expected")
        return self


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A Job as the cluster has it.

    Attributes:
        name: its name.
        succeeded: complete.
        failed: failed for good.
        active: with a pod that has not ended.
        suspended: not started.
        failures: pods whose failure counts against its retries.
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
class Seen:
    """What is seen of a cluster at one time.

    Attributes:
        jobs: the Jobs.
        nodes: how many nodes each pool has.
        ran_on: on which pools pods of Jobs have run.
        waits: why pods and workloads wait, in the scheduler's, the autoscaler's and the queue's words.
        logs: what pods that ran as processes have written.
        events: the timeline.
        cost: US dollars so far.
        runs: the phase of each run of a pipeline.
        steps: of each step of a pipeline, the pool of each pod that ran, by its uid.
    """

    jobs: Sequence[JobSeen]
    nodes: Mapping[str, int]
    ran_on: frozenset[str]
    waits: Sequence[str]
    logs: str
    events: Sequence[Event]
    cost: float
    runs: Sequence[str] = ()
    steps: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])


def misses(condition: Condition, seen: Seen) -> list[str]:
    """What of a condition does not hold, a sentence each."""
    return [
        *_jobs(condition, seen),
        *_pipelines(condition, seen),
        *_nodes(condition, seen),
        *_words(condition, seen),
        *_past(condition, seen),
    ]


def _jobs(condition: Condition, seen: Seen) -> Iterator[str]:
    if condition.jobs:
        named = [job for job in seen.jobs if fnmatchcase(job.name, condition.jobs.name)]
        for state in ("succeeded", "failed", "active", "suspended"):
            number = sum(getattr(job, state) for job in named)
            yield from _miss(getattr(condition.jobs, state), number, f"Jobs {state}")
    if condition.indexes:
        named = [job for job in seen.jobs if fnmatchcase(job.name, condition.indexes.name)]
        for state in ("succeeded", "failed"):
            number = sum(getattr(job, f"indexes_{state}") for job in named)
            yield from _miss(getattr(condition.indexes, state), number, f"indexes {state}")
    failures = sum(job.failures for job in seen.jobs)
    yield from _miss(condition.failures_counted, failures, "failures counted against retries")


_ENDED = {"Succeeded": "succeeded", "Failed": "failed", "Error": "failed"}
"""Argo's phases of a run that has ended."""


def _pipelines(condition: Condition, seen: Seen) -> Iterator[str]:
    if condition.pipelines:
        states = [_ENDED.get(phase, "running") for phase in seen.runs]
        for state in ("succeeded", "failed", "running"):
            yield from _miss(getattr(condition.pipelines, state), states.count(state), f"pipelines {state}")
    for step in condition.steps:
        pools = seen.steps.get(step.name, {}).values()
        strayed = sorted({pool for pool in pools if not any(fnmatchcase(pool, name) for name in step.ran_on)})
        if not pools:
            yield f"Step {step.name} has not run."
        elif strayed:
            yield f"Step {step.name} ran on {', '.join(strayed)}, not only on {', '.join(step.ran_on)}."
        yield from _miss(step.pods, len(pools), f"pods of step {step.name}")


def _nodes(condition: Condition, seen: Seen) -> Iterator[str]:
    for pattern, wanted in condition.nodes.items():
        number = sum(count for pool, count in seen.nodes.items() if fnmatchcase(pool, pattern))
        yield from _miss(wanted, number, f"nodes of {pattern}")
    if condition.ran_on is not None:
        strayed = {
            pool for pool in seen.ran_on if not any(fnmatchcase(pool, name) for name in condition.ran_on)
        }
        if strayed:
            yield f"Pods ran on {', '.join(sorted(strayed))}, not only on {', '.join(condition.ran_on)}."


def _words(condition: Condition, seen: Seen) -> Iterator[str]:
    wanted = condition.waiting
    if wanted is not None and not any(wanted.lower() in text.lower() for text in seen.waits):
        yield f"Nothing waits because of “{wanted}”: {' | '.join(seen.waits) or 'nothing waits'}."
    if condition.log is not None and condition.log not in seen.logs:
        yield f"No log has “{condition.log}”."


def _past(condition: Condition, seen: Seen) -> Iterator[str]:
    for happened in condition.happened:
        number = sum(
            fnmatchcase(event.kind, happened.kind) and happened.says.lower() in event.text.lower()
            for event in seen.events
        )
        words = f" saying “{happened.says}”" if happened.says else ""
        yield from _miss(happened.times, number, f"events {happened.kind}{words}")
    if condition.costs_at_most is not None and seen.cost > condition.costs_at_most:
        yield f"Nodes cost ${seen.cost:.2f} so far, more than ${condition.costs_at_most:.2f}."


def _miss(wanted: Range | None, number: int, what: str) -> Iterator[str]:
    if wanted is not None and not wanted.holds(number):
        yield f"{number} {what}, expected {wanted}."
