"""Run of a whole scenario."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ebbtide_rehearsal.cloud.clock import ClusterTime
from ebbtide_rehearsal.report.cost import ledger, timed
from ebbtide_rehearsal.report.document import EventReport, MoneyReport, Report, StepReport
from ebbtide_rehearsal.report.scale_down import minutes_to_zero
from ebbtide_rehearsal.scenarios.execution import Play
from ebbtide_rehearsal.scenarios.model import Destroy, Scenario, Step
from ebbtide_rehearsal.scenarios.progress import Finished, Started, Watch, Worked
from ebbtide_rehearsal.scenarios.titles import title
from ebbtide_rehearsal.stage import Stage

_MIB: Final = 1024 * 1024


def play(scenario: Scenario, stage: Stage, base_directory: Path, watch: Watch) -> Report:
    """Run a scenario. A failed step ends it, and the stack is destroyed.

    Args:
        scenario: the steps and expectations.
        stage: the environment.
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
    costs = ledger(events, now, playing.rates)
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
