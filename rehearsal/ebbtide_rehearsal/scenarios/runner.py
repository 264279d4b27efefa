"""Run of a whole scenario."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ebbtide_rehearsal.report.cost import spent
from ebbtide_rehearsal.report.document import EventReport, Report, StepReport
from ebbtide_rehearsal.scenarios.execution import Play
from ebbtide_rehearsal.scenarios.model import Destroy, Scenario, Step
from ebbtide_rehearsal.scenarios.titles import title
from ebbtide_rehearsal.stage import Stage

Watch = Callable[[StepReport], None]

_MIB: Final = 1024 * 1024


def play(scenario: Scenario, stage: Stage, home: Path, watch: Watch) -> Report:
    """Run a scenario. A failed step ends it, and the stack is destroyed.

    Args:
        scenario: the steps and expectations.
        stage: the environment.
        home: the base directory of the scenario's relative paths.
        watch: called after each step.

    Raises:
        RehearsalError: it cannot continue.
    """
    started, opened = time.monotonic(), stage.store.clock.now()
    playing = Play(stage, home)
    done: list[StepReport] = []
    for step in _steps(scenario, playing, done):
        at, began = stage.store.clock.now() - opened, time.monotonic()
        misses = playing.perform(step)
        report = StepReport(title=title(step), at=at, seconds=time.monotonic() - began, misses=tuple(misses))
        done.append(report)
        watch(report)
    events = stage.store.events()
    return Report(
        title=scenario.title,
        stack=stage.engine.name,
        speed=scenario.speed,
        steps=tuple(done),
        events=tuple(
            EventReport(at=e.at - opened, kind=e.kind, text=e.text, facts=dict(e.facts))
            for e in events
            if e.at >= opened
        ),
        cost=spent(events, stage.store.clock.now()),
        seconds=time.monotonic() - started,
        memory_mib=stage.memory() // _MIB,
    )


def _steps(scenario: Scenario, playing: Play, done: list[StepReport]) -> Iterator[Step]:
    for step in scenario.steps:
        yield step
        if done[-1].misses:
            break
    if playing.is_up:
        yield Destroy(do="destroy")
