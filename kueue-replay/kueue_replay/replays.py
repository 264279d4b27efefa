"""Replays of a trace on one cluster, or on two versions of one: from a request to its result."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, TypeAlias, TypeVar

from pydantic import Field, ValidationError, model_validator
from rich.console import Console

from ebbtide.declaration.model.shape.findings import shape_faults
from ebbtide.errors import EbbtideError
from ebbtide.text import several
from ebbtide.values.clock import in_utc
from ebbtide.values.documents import DocumentPart
from ebbtide_rehearsal.tools.progress import narrated
from kueue_replay import report as reports
from kueue_replay.cloud_model import Availability, Cloud, CloudModel, assumptions
from kueue_replay.cluster import Cluster, Declaration, Part
from kueue_replay.kueue import PROGRAM
from kueue_replay.mapping import Mapped, Mapper, Table, Work, check_table
from kueue_replay.report import AssumptionReport, MappingReport, ReplayReport, verdict
from kueue_replay.scheduler import Decision, Forwarding, Scheduler, Schedulers, schedulers
from kueue_replay.simulation import LONGEST, JobOutcome, Outcome, simulate, waits
from kueue_replay.trace import Trace, TraceJob, read_trace

MOST_FOR_ASSUMPTIONS: Final = 5000
"""Largest number of jobs that is replayed again for each assumption."""

_FIRST: Final = 250
"""Number of jobs that are replayed first within a time limit, to measure the time of more."""
_STEP: Final = 8
"""Largest factor from one number of jobs to the next."""
_MARGIN: Final = 1.5
"""Factor of the expected time of more jobs: waiting ones make each decision longer."""

_Model = TypeVar("_Model", bound=Part)

OnReplay: TypeAlias = Callable[[str], None]
"""Called with the name of each replay before it begins."""


class RequestError(EbbtideError):
    """A request is invalid; the message has every fault."""

    rule = "replay-request"


class TimeLimitError(EbbtideError):
    """Not even the first jobs of a trace can be replayed within the time limit."""

    rule = "replay-time-limit"


class Request(Part):
    """A request: clusters, a trace, and how the trace is replayed."""

    clusters: tuple[Cluster, ...] = Field(min_length=1)
    """The cluster, or two versions of it, the earlier one first."""
    trace: str = ""
    """File of the trace."""
    jobs: tuple[dict[str, Any], ...] = ()
    """Jobs in place of a file, by time of submission, with fields of `TraceJob`, at least `seconds`."""
    map_: Table = Table()
    """Names of the trace as names of the cluster."""
    cloud_model: CloudModel = CloudModel()
    """The cloud's delays, stock and reclaims."""
    availability: dict[str, Availability] = Field(default_factory=dict[str, Availability])
    """Recorded stock, by the names that the model's processes have for it."""
    starts: datetime | None = None
    """Time of the first submission, for pools with a period. Default: as the trace has it, or without dates
    the begin of the first period."""
    seeds: int = Field(default=1, ge=1)
    """Number of replays of each cluster, each with other draws."""
    first_seed: int = 1
    keep_order: bool = False
    """Submit jobs of one time in their order with every seed; by default with seed 1 alone."""
    vary: bool = False
    """Replay half and twice of each assumption of the model, too."""
    seconds: float | None = None
    """Time limit: as many of the first jobs as it allows are replayed."""
    until_started: tuple[int, ...] = ()
    """Numbers of jobs, from 1: a replay ends when those that fit have started."""
    horizon: float = LONGEST
    """Latest end of a replay, seconds from the start."""

    @model_validator(mode="after")
    def _one(self) -> "Request":
        if bool(self.trace) == bool(self.jobs):
            raise ValueError("Either trace or jobs is needed. Write exactly one of them.")
        return self


class _Jobs(Part):
    """The jobs of a request."""

    jobs: list[TraceJob]


def _validated(model: type[_Model], written: Mapping[str, Any]) -> _Model:
    try:
        return model.model_validate(written)
    except ValidationError as error:
        faults = shape_faults(model, error, written, "The request")
        raise RequestError("\n".join(map(str, faults))) from error


class JobResult(DocumentPart):
    """A job of a replay; times in seconds from the start."""

    line: int
    """Its line in the trace, or its number in the request."""
    name: str
    queue: str
    """Its LocalQueue, or its pool; empty if there is none."""
    pools: tuple[str, ...]
    """Pools that it may have nodes of."""
    pods: int
    priority: int
    """Value of its priority."""
    submitted: float
    reserved: float | None
    """Time at which it first had quota; null for never."""
    started: float | None
    """Time at which all of its pods first ran; null for never."""
    ended: float | None
    preemptions: int
    interruptions: dict[str, int]
    """Number of lost nodes and failures, by cause."""
    lost: float
    """Seconds of work that were repeated."""
    fits: bool
    """True for a job that fits empty nodes of its pools."""
    why_not: str
    """Why it does not fit, or never ran or ended; empty if it ended, or the replay did before."""


class NodeResult(DocumentPart):
    """A node of a replay."""

    name: str
    pool: str
    since: float
    """Time of its request, seconds from the start."""
    until: float | None
    """Time of its end; null if it exists at the end."""
    hourly: float | None
    """Its price, US dollars per hour; null if it is unknown."""


class SeedResult(DocumentPart):
    """One replay."""

    cluster: str
    seed: int
    end: float
    """Time at which nothing more happened."""
    jobs: tuple[JobResult, ...]
    nodes: tuple[NodeResult, ...]
    usd: dict[str, float | None]
    """Cost of each pool's nodes, US dollars; null if the price of a node is unknown."""
    other_usd: dict[str, float]
    """Other charges by item, US dollars."""


class ResultDocument(DocumentPart):
    """Starts, ends, nodes and costs of all replays, and their report."""

    version: Literal["kueue-replay/v1"] = "kueue-replay/v1"
    replays: tuple[SeedResult, ...]
    report: ReplayReport


@dataclass(frozen=True, slots=True)
class _Column:
    """The outcomes of a cluster, one for each seed."""

    declaration: Declaration
    mapped: Mapped
    outcomes: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a request.

    Attributes:
        jobs: number of jobs that were given.
        submitted: time of the last one's submission.
    """

    trace: Trace
    jobs: int
    submitted: float
    columns: Sequence[_Column]
    effects: Sequence[AssumptionReport]
    first_seed: int

    @property
    def until(self) -> float:
        """Time until which every cluster's nodes are billed."""
        return max(outcome.end for column in self.columns for outcome in column.outcomes)

    def replays(self) -> Iterator[SeedResult]:
        """Yield starts, ends, nodes and costs of each replay."""
        for column in self.columns:
            for seed, outcome in enumerate(column.outcomes, start=self.first_seed):
                yield _seed_result(column.declaration, seed, outcome, self.until)

    def job_documents(self) -> list[dict[str, Any]]:
        """Return the jobs of all replays, as JSON."""
        return [job.model_dump(mode="json") for one in self.replays() for job in one.jobs]

    def document(self) -> ResultDocument:
        """Return all of it as a document."""
        return ResultDocument(replays=tuple(self.replays()), report=self.report())

    def report(self) -> ReplayReport:
        """Return the statistics of all replays, and the verdict."""
        declarations = [column.declaration for column in self.columns]
        columns = tuple(
            reports.column(column.declaration, column.outcomes, self.until) for column in self.columns
        )
        mapped = self.columns[0].mapped
        notes = list(self.trace.notes)
        if mapped.rounded_pods:
            jobs = several(mapped.rounded_pods, "job")
            notes.append(f"The GPUs of {jobs} were rounded up to equal pods.")
        if not self.effects:
            notes.append(
                f"Assumptions are varied for up to {MOST_FOR_ASSUMPTIONS:,} jobs: replay a part of the trace."
            )
        return ReplayReport(
            trace=self.trace.file,
            format=self.trace.format,
            jobs=len(self.trace.jobs),
            seconds=self.trace.jobs[-1].submit,
            until=self.until,
            notes=tuple(notes),
            mapping=tuple(
                MappingReport(queue=queue, gpu_type=gpu_type, local_queue=local_queue, jobs=jobs)
                for (queue, gpu_type, local_queue), jobs in mapped.rows.items()
            ),
            shapes=tuple(reports.shapes(mapped)),
            seeds=len(self.columns[0].outcomes),
            verdict=tuple(verdict(declarations, columns, len(mapped.work))),
            columns=columns,
            assumptions=tuple(self.effects),
            without_price=_all(declaration.without_price for declaration in declarations),
            estimated=_all(declaration.cluster.estimated for declaration in declarations),
        )


def _all(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def replay(request: Request | Mapping[str, Any]) -> Result:
    """Replay jobs on clusters with the real Kueue. It is built from its Go module when it is first used, with
    its progress on standard error.

    Args:
        request: what is replayed on what, as `Request` or as its JSON.

    Raises:
        RequestError: the request is invalid.
        TraceError: the trace is invalid, for one of the clusters.
        TimeLimitError: the time limit is too short.
        RehearsalError: Kueue cannot be built, or has failed.
    """
    return Replay(request).run(program(Console(stderr=True)))


def program(console: Console) -> Path:
    """Return the file of Kueue's program; if it is missing, it is built, with its progress on a console."""
    return narrated([PROGRAM], console).path(PROGRAM)


class Replay:
    """A request that is valid, with its jobs."""

    def __init__(self, request: Request | Mapping[str, Any]) -> None:
        """Check a request, and read its trace.

        Raises:
            RequestError: the request is invalid.
            TraceError: the trace is invalid, for one of the clusters.
        """
        self._request = request if isinstance(request, Request) else _validated(Request, request)
        self._declarations = [Declaration.of(cluster) for cluster in self._request.clusters]
        mappers = [Mapper(declaration, self._request.map_, own=True) for declaration in self._declarations]
        check_table(mappers)
        self._trace = _started(self._request, _trace(self._request, mappers))
        self._declarations = [
            Declaration.of(cluster, self._trace.first) for cluster in self._request.clusters
        ]

    def run(
        self,
        kueue: Path | Schedulers,
        on_replay: OnReplay = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Result:
        """Replay the jobs.

        Args:
            kueue: Kueue's program, or what starts another scheduler.
            on_replay: called before each replay.
            clock: the current time in seconds, for the time limit.

        Raises:
            TimeLimitError: the time limit is too short.
        """
        start = schedulers(kueue) if isinstance(kueue, Path) else kueue
        limit = self._request.seconds
        if limit is None:
            return self._run(self._trace, start, on_replay)
        end = clock() + limit

        @contextmanager
        def limited(declaration: Declaration) -> Generator[Scheduler]:
            with start(declaration) as scheduler:
                yield _Limited(scheduler, lambda: clock() > end)

        result, jobs = None, self._trace.jobs
        count = min(_FIRST, len(jobs))
        while result is None or len(result.trace.jobs) < count:
            began = clock()
            try:
                result = self._run(replace(self._trace, jobs=jobs[:count]), limited, on_replay)
            except _TimeIsUpError:
                break
            possible = int(count * (end - clock()) / max(1e-3, clock() - began) / _MARGIN)
            count = max(count, min(len(jobs), _STEP * count, possible))
        if result is None:
            first = several(count, "job")
            raise TimeLimitError(
                f"The first {first} of {self._trace.file} take more than {limit:.0f} s to replay."
            )
        return result

    def _run(self, trace: Trace, start: Schedulers, on_replay: OnReplay) -> Result:
        request, columns = self._request, list[_Column]()
        for declaration in self._declarations:
            own, ends = trace.format in ("csv", "jobs"), not request.until_started
            mapped = Mapper(declaration, request.map_, own=own, ends=ends).mapped(trace)
            outcomes: list[Outcome] = []
            for number in range(1, request.seeds + 1):
                on_replay(f"{declaration.name}, seed {number} of {request.seeds}")
                seed = request.first_seed + number - 1
                outcomes.append(self._outcome(declaration, mapped, seed, trace, start))
            columns.append(_Column(declaration, mapped, outcomes))
        result = Result(
            trace, len(self._trace.jobs), self._trace.jobs[-1].submit, columns, (), request.first_seed
        )
        if not request.vary or len(trace.jobs) > MOST_FOR_ASSUMPTIONS:
            return result
        last, model, effects = columns[-1], request.cloud_model, list[AssumptionReport]()
        for factor in (0.5, 2.0):
            for name, changed in assumptions(model, factor).items():
                if changed != model and _matters(name, last.declaration):
                    on_replay(f"{last.declaration.name}, {factor:g} times the {name}")
                    other = self._outcome(
                        last.declaration, last.mapped, request.first_seed, trace, start, changed
                    )
                    effects.append(_effect(name, factor, last.outcomes[0], other, result.until))
        return replace(result, effects=sorted(effects, key=lambda effect: effect.name))

    def _outcome(
        self,
        declaration: Declaration,
        mapped: Mapped,
        seed: int,
        trace: Trace,
        start: Schedulers,
        model: CloudModel | None = None,
    ) -> Outcome:
        request = self._request
        admitted = {work.name for work in mapped.work if work.job.admitted}
        existing = declaration.present_nodes(
            (
                work.queue.pools if not work.flavor else declaration.flavors[work.flavor].pools,
                work.pods,
                work.shape,
            )
            for work in mapped.work
            if work.job.admitted and work.job.started
        )
        present = declaration.with_nodes(existing) if existing or admitted else declaration
        cloud = Cloud(
            model or request.cloud_model, request.availability, seed, trace.midnight, existing, admitted
        )
        work = mapped.work if request.keep_order else _in_order(mapped.work, seed)
        awaited = [one.name for one in mapped.work if one.number in request.until_started and not one.why_not]
        if request.until_started and not awaited:
            return Outcome(present, [JobOutcome(one, why_not=one.why_not) for one in work])
        with start(present) as scheduler:
            return simulate(present, work, scheduler, cloud, awaited=awaited, horizon=request.horizon)


def _trace(request: Request, mappers: Sequence[Mapper]) -> Trace:
    if request.trace:
        return read_trace(
            Path(request.trace),
            lambda job: dict.fromkeys(fault for mapper in mappers for fault in mapper.faults(job)),
        )
    rows = (
        {"line": line, "name": "", "submit": 0.0, **job} for line, job in enumerate(request.jobs, start=1)
    )
    return Trace("the request", "jobs", _validated(_Jobs, {"jobs": list(rows)}).jobs, 0.0)


def _started(request: Request, trace: Trace) -> Trace:
    """Return a trace with the time of its first submission, if pools have a period, and a note of it."""
    periods = {
        pool.name: (pool.begins, pool.ends)
        for cluster in request.clusters
        for pool in cluster.pools
        if pool.begins and pool.ends
    }
    start = request.starts or trace.start or min((begin for begin, _ in periods.values()), default=None)
    if start is None:
        return trace
    notes = [
        f"The first job is submitted at {in_utc(start)}, and the reservation of pool {name} is from "
        f"{in_utc(begin)} to {in_utc(end)}; --starts TIME sets another time."
        for name, (begin, end) in periods.items()
    ]
    return replace(trace, first=start.timestamp(), notes=(*trace.notes, *notes))


class _TimeIsUpError(Exception):
    """The time limit has passed."""


class _Limited(Forwarding):
    """A scheduler that ends with a time limit."""

    def __init__(self, scheduler: Scheduler, is_over: Callable[[], bool]) -> None:
        super().__init__(scheduler)
        self._is_over = is_over

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Decide, unless the time is up."""
        if self._is_over():
            raise _TimeIsUpError
        return self._scheduler.step(at, before)


def _in_order(work: Sequence[Work], seed: int) -> Sequence[Work]:
    """Return the jobs in the order of their submission: those of the same time in the trace's order with the
    first seed, and in a drawn one with each other."""
    if seed == 1:
        return work
    random = Random(seed)  # noqa: S311 - a simulation
    groups = (list(group) for _, group in groupby(work, lambda one: one.job.submit))
    return [one for group in groups for one in random.sample(group, len(group))]


def _matters(name: str, declaration: Declaration) -> bool:
    """Return whether an assumption applies to a cluster's pools."""
    kinds = {pool.capacity for pool in declaration.pools}
    match name:
        case "rate of reclaims":
            return bool(kinds & {"spot", "preemptible"})
        case "wait for queued nodes":
            return "queued" in kinds
        case _:
            return True


def _effect(name: str, factor: float, base: Outcome, other: Outcome, until: float) -> AssumptionReport:
    def ratio(after: float, before: float) -> float | None:
        return after / before if before else None

    usd = ratio(reports.total(other.costs(max(until, other.end))), reports.total(base.costs(until)))
    wait = ratio(reports.mean(waits(other.jobs)), reports.mean(waits(base.jobs)))
    return AssumptionReport(name=name, factor=factor, usd=usd, wait=wait)


def _seed_result(declaration: Declaration, seed: int, outcome: Outcome, until: float) -> SeedResult:
    costs, nodes = outcome.costs(until), tuple(_node_results(outcome))
    unpriced = {node.pool for node in nodes if node.hourly is None}
    return SeedResult(
        cluster=declaration.name,
        seed=seed,
        end=outcome.end,
        jobs=tuple(map(_job_result, sorted(outcome.jobs, key=lambda job: job.work.number))),
        nodes=nodes,
        usd={
            pool.name: None if pool.name in unpriced else costs.pools.get(pool.name, 0.0)
            for pool in declaration.pools
        },
        other_usd=dict(costs.others),
    )


def _job_result(job: JobOutcome) -> JobResult:
    work = job.work
    return JobResult(
        line=work.job.line,
        name=work.job.name,
        queue=work.queue.name,
        pools=work.queue.pools,
        pods=work.pods,
        priority=work.priority,
        submitted=work.job.submit,
        reserved=job.reserved,
        started=job.started,
        ended=job.ended,
        preemptions=job.preemptions,
        interruptions=dict(job.interruptions),
        lost=job.lost,
        fits=not work.why_not,
        why_not=job.why_not,
    )


def _node_results(outcome: Outcome) -> Iterator[NodeResult]:
    ends = {event.facts["node"]: event.at for event in outcome.events if event.kind == "node-removed"}
    for event in outcome.events:
        if event.kind == "node-added":
            name = event.facts["node"]
            yield NodeResult(
                name=name,
                pool=event.facts["pool"],
                since=event.at,
                until=ends.get(name),
                hourly=event.facts["hourly"],
            )
