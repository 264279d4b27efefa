"""Run of a scenario: its steps, the compiled pipelines that they run, and progress for those who watch.

A step returns its unmet expectations, a sentence each.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, assert_never, cast

from ebbtide.clients.kubernetes import ApiError
from ebbtide.clients.kubernetes.objects import part
from ebbtide.declaration.project.yaml_file import YamlFileError
from ebbtide.placement import Profile, ProfileError
from ebbtide.text import several
from ebbtide.work.errors import WorkloadError
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.cloud.store import ClusterTime, InjectedFault
from ebbtide_rehearsal.control_plane.discovery import Discovery, wrong_fields
from ebbtide_rehearsal.control_plane.stages import RUNS, RUNS_FOR
from ebbtide_rehearsal.engine import Outcome
from ebbtide_rehearsal.pipelines.driver import UnsupportedPipelineError
from ebbtide_rehearsal.pipelines.workflow import LAUNCHED, read, workflow
from ebbtide_rehearsal.report.document import (
    EventReport,
    JobsReport,
    MoneyReport,
    Rates,
    Report,
    StepReport,
    ledger,
    minutes_to_zero,
    rates,
    timed,
)
from ebbtide_rehearsal.scenarios.argo import WORKFLOWS, spec_patch
from ebbtide_rehearsal.scenarios.conditions import ENDED_RUNS, Condition, Observation, misses
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
from ebbtide_rehearsal.scenarios.observer import (
    SUBMITTED_LABEL,
    Object,
    Observer,
    on_every_pool,
    output_of,
    submitted,
)
from ebbtide_rehearsal.stage import Stage

_LOOK_EVERY: Final = 0.5  # seconds
_SHOWN: Final = 8
_MIB: Final = 1024 * 1024
_BASE_DIRECTORY: Final = "{home}"


@dataclass(slots=True)
class Play:
    """The state of a running scenario.

    Attributes:
        on_progress: called with the current state of a step.
        is_up: true if there is a stack to destroy.
        observer: takes snapshots of the cluster; None before `up`.
        faults: named injected failures.
        jobs: counts of Jobs, where they change.
        rates: charges besides nodes, of the last program that was brought up.
    """

    stage: Stage
    base_directory: Path
    on_progress: Callable[[str], None]
    time: ClusterTime
    is_up: bool = False
    observer: Observer | None = None
    faults: dict[str, int] = field(default_factory=dict[str, int])
    jobs: list[JobsReport] = field(default_factory=list[JobsReport])
    rates: Rates = field(default_factory=Rates)

    def perform(self, step: Step) -> list[str]:
        """Run a step."""
        clock = self.stage.store.clock
        start = clock.now()
        misses = list(self._done(step))
        if not isinstance(step, Expect | Pause):
            self.time.work.append((start, clock.now()))
        return misses

    def _done(self, step: Step) -> Iterator[str]:  # noqa: C901 - a case each
        match step:
            case Up():
                yield from self._up(step)
            case Destroy():
                yield from self._destroy(step)
            case Submit():
                generate = partial(submitted, step, base_directory=self.base_directory)
                yield from self._submit(generate, step.refused, step.as_ or "")
            case RunPipeline():
                self._run(step)
            case EveryPool():
                yield from self._submit(lambda profile: on_every_pool(step, profile))
            case Delete():
                yield from self._delete(step)
            case FailureInjection():
                self._inject_failure(step)
            case Lift():
                yield from self._lift(step)
            case Pause():
                self.stage.watch(step.seconds)
            case Expect():
                yield from self._expect(step)
            case _:
                assert_never(step)

    def _run(self, step: RunPipeline) -> None:
        run = run_of(step, self._profile(), self.base_directory, self.stage.store.clock.speed)
        api = self.stage.argo().api
        # A compiled pipeline has none of the fields of the spec patch, so no merge is needed.
        api.create(WORKFLOWS, {**run, "spec": {**run["spec"], **spec_patch(api)}})

    def _inject_failure(self, step: FailureInjection) -> None:
        number = self.stage.store.inject(_fault(step))
        if step.name:
            self.faults[step.name] = number

    def _lift(self, step: Lift) -> Iterator[str]:
        number = self.faults.pop(step.fault, None)
        if number is None:
            yield f"There is no fault {step.fault}."
        else:
            self.stage.store.remove_fault(number)

    def _up(self, step: Up) -> Iterator[str]:
        engine = self.stage.engine
        if step.change or step.pools:
            self.stage.declare(_changed(engine.declaration, step))
        self.is_up = True
        if step.refresh:
            yield from engine.refresh(self.on_progress).errors
        outcome = engine.up(self.on_progress)
        if step.refused is not None:
            yield from _refused(outcome, step.refused)
            return
        yield from outcome.errors
        if outcome.done and not step.unchanged and "kubeconfig" in engine.outputs():
            recording = engine.recording()
            self.rates = rates(recording)
            yield from wrong_fields(recording, self.stage.api())
        if step.unchanged:
            yield from (f"{change}, though nothing was changed." for change in outcome.steps[:_SHOWN])
        for change in outcome.steps:
            is_kept = any(part in change.name for part in step.keeps)
            if is_kept and change.operation not in {"create", "update"}:
                yield f"{change}, though it must be kept."

    def _destroy(self, step: Destroy) -> Iterator[str]:
        self.stage.end_argo()
        retained = self.stage.engine.retained()
        outcome = self.stage.engine.destroy(self.on_progress)
        if step.refused is not None:
            yield from _refused(outcome, step.refused)
            return
        self.is_up = not outcome.done
        yield from outcome.errors
        if outcome.done:
            yield from self.stage.leftovers(retained)

    def _submit(
        self, generate: Callable[[Profile], Iterator[Object]], refused: str | None = None, user: str = ""
    ) -> Iterator[str]:
        try:
            objects = list(generate(self._profile()))
        except (WorkloadError, ProfileError) as error:
            yield from _compare(str(error), refused)
        except YamlFileError as error:
            yield str(error)
        except OSError as error:
            yield f"{error.filename}: {error.strerror}."
        else:
            yield from self._apply(objects, refused, user)

    def _apply(self, objects: list[Object], refused: str | None, user: str) -> Iterator[str]:
        known = Discovery(self.stage.api())
        api = self.stage.api().as_user(user)
        for item in objects:
            path = known.of(item).path(item["metadata"].get("namespace", "default"))
            try:
                api.create(path, item)
            except ApiError as error:
                yield from _compare(str(error), refused)
                return
        if refused is not None:
            yield f"It was accepted, and should have been refused with “{refused}”."

    def _delete(self, step: Delete) -> Iterator[str]:
        api = self.stage.api()
        root = "/apis/batch/v1" if step.kind == "Job" else "/api/v1"
        plural = f"{step.kind.lower()}s"
        named = [
            item for item in api.items(f"{root}/{plural}") if fnmatchcase(item["metadata"]["name"], step.name)
        ]
        if not named:
            yield f"There is no {step.kind} called {step.name}."
        for item in named:
            metadata = item["metadata"]
            collection = f"{root}/namespaces/{metadata['namespace']}/{plural}"
            api.delete(f"{collection}/{metadata['name']}", propagationPolicy="Background")

    def _expect(self, step: Expect) -> list[str]:
        end = time.monotonic() + step.within
        while missed := self._misses(step.that):
            if time.monotonic() >= end:
                return missed
            self.stage.watch(_LOOK_EVERY)
        return []

    def _misses(self, condition: Condition) -> list[str]:
        if self.observer is None:
            self.observer = Observer(self.stage.api(), self.stage.store, self.time)
        observation = self.observer.observe()
        self._count(observation)
        return misses(condition, observation)

    def _count(self, observation: Observation) -> None:
        """Keep and tell the counts of Jobs, pipeline runs and nodes."""
        open_ = [job for job in observation.jobs if not job.succeeded and not job.failed]
        running = sum(job.name in observation.running for job in open_)
        ended_runs = sum(phase in ENDED_RUNS for phase in observation.runs)
        jobs = JobsReport(
            at=self.stage.store.clock.now(),
            waiting=len(open_) - running,
            running=running + len(observation.runs) - ended_runs,
            ended=len(observation.jobs) - len(open_) + ended_runs,
        )
        if not self.jobs or jobs.model_copy(update={"at": self.jobs[-1].at}) != self.jobs[-1]:
            self.jobs.append(jobs)
        nodes = ", ".join(f"{pool} {count}" for pool, count in sorted(observation.nodes.items()) if pool)
        counts = f"Jobs: {jobs.waiting} waiting, {jobs.running} running, {jobs.ended} ended"
        self.on_progress(f"nodes: {nodes or 'none'}; {counts}; ${observation.cost:.2f}")

    def _profile(self) -> Profile:
        return Profile.load(cast("str", self.stage.engine.outputs()["placementProfile"]))


def _fault(step: FailureInjection) -> InjectedFault:
    details = {
        name: value
        for name in ("share", "count", "graceful", "limit", "message", "seconds")
        if (value := getattr(step, name)) is not None
    }
    return InjectedFault(step.kind, step.target, 1 if step.kind == "reclaim" else step.times, details)


def _changed(declaration: Mapping[str, Any], step: Up) -> dict[str, Any]:
    changed = _with(declaration, step.change)
    changed["pools"] = [_with(pool, step.pools.get(pool["name"], {})) for pool in changed["pools"]]
    return changed


def _with(document: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**document, **change}.items() if value is not None}


def _refused(outcome: Outcome, words: str) -> Iterator[str]:
    if outcome.done:
        yield f"It succeeded, and should have been refused with “{words}”."
    else:
        yield from _compare("\n".join(outcome.errors), words)


def _compare(text: str, words: str | None) -> Iterator[str]:
    """Compare an error with the expected text; empty if it contains it."""
    if words is None:
        yield text
    elif words.lower() not in text.lower():
        yield f"It was refused, but not with “{words}”: {text}"


def run_of(step: RunPipeline, profile: Profile, base_directory: Path, speed: float) -> dict[str, Any]:
    """Return the Workflow of a pipeline's run.

    Args:
        step: the pipeline and its arguments.
        base_directory: the scenario's directory.
        speed: simulated seconds per second, by which the waits between retries are divided.

    Raises:
        RehearsalError: the program fails or writes no such file, or the pipeline uses an unsupported feature.
    """
    content = _compiled(step, profile, base_directory)
    try:
        compiled = read(content)
    except UnsupportedPipelineError as error:
        raise RehearsalError(f"{step.program} cannot be rehearsed: {error}") from None
    arguments = _arguments(step.arguments, base_directory)
    run = workflow(compiled, arguments, {RUNS: "process"}, speed=speed)
    run["metadata"]["labels"] = {SUBMITTED_LABEL: "true"}
    for template in run["spec"]["templates"] if step.runs_for else ():
        if LAUNCHED.items() <= part(template, "metadata", "annotations").items():
            template["metadata"]["annotations"][RUNS_FOR] = f"{step.runs_for:g}"
    return run


def _arguments(given: Mapping[str, Any], base_directory: Path) -> dict[str, Any]:
    return {
        name: value.replace(_BASE_DIRECTORY, str(base_directory.resolve()))
        if isinstance(value, str)
        else value
        for name, value in given.items()
    }


def _compiled(step: RunPipeline, profile: Profile, base_directory: Path) -> str:
    """Run the program in an empty directory, and return the compiled pipeline that it writes."""
    program = (base_directory / step.program).resolve()
    with TemporaryDirectory() as folder:
        output_of(program, profile, Path(folder))
        files = {file.stem: file for file in sorted(Path(folder).glob("*.yaml"))}
        chosen = step.pipeline or next(iter(files), "")
        if chosen not in files or (len(files) > 1 and not step.pipeline):
            written = ", ".join(f"{name}.yaml" for name in files) or "no file"
            raise RehearsalError(f"{program} writes {written}: select one with `pipeline`, without .yaml.")
        return files[chosen].read_text(encoding="utf-8")


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
            text = f"pulumi destroy{_refusal(step.refused) or ', and nothing is left'}"
        case Submit():
            user = f" as {step.as_}" if step.as_ else ""
            text = f"submit {_work(step)}{user}{_refusal(step.refused)}"
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


def _refusal(words: str | None) -> str:
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
