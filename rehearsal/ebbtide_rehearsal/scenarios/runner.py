"""Run of a whole scenario, and its progress for those who watch it."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from ebbtide.text import several
from ebbtide_rehearsal.cloud.store import ClusterTime
from ebbtide_rehearsal.report.document import (
    EventReport,
    MoneyReport,
    Report,
    StepReport,
    ledger,
    minutes_to_zero,
    timed,
)
from ebbtide_rehearsal.scenarios.conditions import Condition
from ebbtide_rehearsal.scenarios.execution import Play
from ebbtide_rehearsal.scenarios.model import (
    Delete,
    Destroy,
    EveryPool,
    Expect,
    FailureInjection,
    Lift,
    Pause,
    RunPipeline,
    Scenario,
    Step,
    Submit,
    Up,
)
from ebbtide_rehearsal.stage import Stage

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Started:
    """A step starts.

    Attributes:
        title: the step's action or expectation.
        number: its number, from 1.
        of: the number of steps.
    """

    title: str
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Worked:
    """The current state of a step.

    Attributes:
        line: an operation of the engine, or nodes and Jobs of the cluster.
    """

    line: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A step ends."""

    report: StepReport


Update = Started | Worked | Finished
Watch = Callable[[Update], None]


def play(scenario: Scenario, stage: Stage, base_directory: Path, watch: Watch) -> Report:
    """Run a scenario. A failed step ends it, and the stack is destroyed.

    Args:
        scenario: the steps and expectations.
        base_directory: the base directory of the scenario's relative paths.
        watch: called with each update.

    Raises:
        RehearsalError: it cannot continue.
    """
    started, opened = time.monotonic(), stage.store.clock.now()
    playing = Play(
        stage, base_directory, lambda line: watch(Worked(line)), ClusterTime(stage.store.clock.speed)
    )
    done: list[StepReport] = []
    for number, step in enumerate(_steps(scenario, playing, done), 1):
        at, began, of = stage.store.clock.now(), time.monotonic(), max(number, len(scenario.steps))
        watch(Started(title(step), number, of))
        misses = playing.perform(step)
        seconds = time.monotonic() - began
        done.append(StepReport(title=title(step), at=at, seconds=seconds, misses=tuple(misses)))
        watch(Finished(done[-1]))
    return _report(scenario, playing, opened, done, time.monotonic() - started)


def _report(
    scenario: Scenario, playing: Play, opened: float, steps: Sequence[StepReport], seconds: float
) -> Report:
    """Build the report in the cluster's time; its clock starts with the first event."""
    stage, clock = playing.stage, playing.time.at
    simulated = stage.store.events()
    events, now, opened = timed(simulated, playing.time), clock(stage.store.clock.now()), clock(opened)
    start = next((event.at for event in events if event.at >= opened), opened)
    costs = ledger(events, now, playing.rates.on(lambda time: clock(time - stage.store.clock.started)))
    return Report(
        title=scenario.title,
        stack=stage.engine.name,
        speed=scenario.speed,
        steps=tuple(step.model_copy(update={"at": max(0.0, clock(step.at) - start)}) for step in steps),
        events=tuple(
            EventReport(at=e.at - start, kind=e.kind, text=e.text, facts=dict(e.facts))
            for e in events
            if e.at >= opened
        ),
        jobs=tuple(jobs.model_copy(update={"at": clock(jobs.at) - start}) for jobs in playing.jobs),
        minutes_to_zero=minutes_to_zero(simulated, playing.jobs),
        cost=dict(costs.pools),
        other_costs=dict(costs.others),
        total_cost=costs.total[-1][1],
        without_price=playing.rates.unknown,
        estimated=playing.rates.estimated,
        money=tuple(
            MoneyReport(at=at - start, usd=usd, hourly=hourly)
            for at, usd, hourly in costs.total
            if at >= opened
        ),
        seconds=seconds,
        memory_mib=stage.memory() // _MIB,
    )


def _steps(scenario: Scenario, playing: Play, done: list[StepReport]) -> Iterator[Step]:
    for step in scenario.steps:
        yield step
        if done[-1].misses:
            break
    if playing.is_up:
        yield Destroy(do="destroy")


def title(step: Step) -> str:  # noqa: C901 - a case each
    """Describe a step in a line."""
    match step:
        case Up():
            text = _up(step)
        case Destroy():
            text = f"pulumi destroy{_refused(step.refused) or ', and nothing is left'}"
        case Submit():
            user = f" as {step.as_}" if step.as_ else ""
            text = f"submit {_work(step)}{user}{_refused(step.refused)}"
        case RunPipeline():
            text = f"run the pipeline {step.pipeline or step.program}"
        case EveryPool():
            text = "submit a Job for every work pool"
        case FailureInjection():
            text = f"fault: {step.kind} of {step.target}{_injection_details(step)}"
        case Lift():
            text = f"remove the fault {step.fault}"
        case Pause():
            text = f"wait {step.seconds:g} s"
        case Expect():
            text = f"within {step.within:g} s: {'; '.join(_condition(step.that))}"
        case Delete():
            text = f"delete {step.kind} {step.name}"
        case _:
            assert_never(step)
    return text


def _refused(words: str | None) -> str:
    return "" if words is None else f", refused with “{words}”"


def _up(step: Up) -> str:
    parts = ["pulumi refresh and up" if step.refresh else "pulumi up"]
    changed = [*step.change, *(f"pool {name}" for name in step.pools)]
    if changed:
        parts.append(f"with another {', '.join(changed)}")
    if step.unchanged:
        parts.append("changes nothing")
    if step.keeps:
        parts.append(f"keeps {', '.join(step.keeps)}")
    if step.refused is not None:
        parts.append(f"is refused with “{step.refused}”")
    return " ".join(parts)


def _work(step: Submit) -> str:
    times = f"{step.count} x " if step.count > 1 else ""
    if file := step.manifests or step.program:
        return f"{times}what {file} has"
    work = step.job or step.sweep or {}
    kind = "Job" if step.job is not None else "sweep"
    namespace = work.get("pool") or f"queue {work.get('queue')}"
    return f"{times}{kind} {work.get('name', '')} to {namespace}"


def _injection_details(step: FailureInjection) -> str:
    match step.kind:
        case "reclaim":
            share = (
                f"{step.share:.0%} of the nodes" if step.share is not None else several(step.count, "node")
            )
            return f", {share}, {'with' if step.graceful else 'without'} notice"
        case "quota":
            return f", {step.limit} left"
        case "api-error":
            return f", {several(step.times, 'time') if step.times else 'every time'}"
        case "slow":
            return f", {step.seconds:g} s"
        case "no-stock":
            return ""


def _pipelines(condition: Condition) -> Iterator[str]:
    if condition.pipelines:
        written = condition.pipelines.model_dump(exclude_none=True)
        yield from (f"{several(getattr(condition.pipelines, s), 'pipeline')} {s}" for s in written)
    for step in condition.steps:
        times = f" in {several(step.pods, 'pod')}" if step.pods else ""
        yield f"step {step.name} ran on {', '.join(step.ran_on)}{times}"


def _condition(condition: Condition) -> Iterator[str]:
    for singular, plural, counts in (
        ("Job", "Jobs", condition.jobs),
        ("index", "indexes", condition.indexes),
    ):
        if counts:
            written = counts.model_dump(exclude_none=True, exclude={"name"})
            yield from (f"{several(getattr(counts, state), singular, plural)} {state}" for state in written)
    yield from _pipelines(condition)
    if condition.failures_counted:
        yield f"{condition.failures_counted} failures counted against retries"
    yield from (f"{several(number, 'node')} of {pool}" for pool, number in condition.nodes.items())
    if condition.ran_on is not None:
        yield f"all ran on {', '.join(condition.ran_on)}"
    if condition.waiting is not None:
        yield f"something waits because of “{condition.waiting}”"
    if condition.log is not None:
        yield f"a log has “{condition.log}”"
    for happened in condition.happened:
        words = f" “{happened.says}”" if happened.says else ""
        yield f"{happened.times} {happened.kind}{words}"
    if condition.costs_at_most is not None:
        yield f"nodes cost ${condition.costs_at_most:g} at most"
