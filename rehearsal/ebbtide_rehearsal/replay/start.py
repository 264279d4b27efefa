"""When waiting or planned work starts: replays of the present state of a cluster's queues."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from statistics import median
from typing import Any, Final

from ebbtide.operations.traces.existing import ExistingWork
from ebbtide.operations.traces.present import Present, PresentJob
from ebbtide.placement import Profile
from ebbtide.text import and_list, several
from ebbtide.values import durations
from ebbtide_rehearsal.cloud.pools import NodePool
from ebbtide_rehearsal.replay.cloud_model import Cloud, CloudModel
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.mapping import Mapper, Table, Work
from ebbtide_rehearsal.replay.present import needed_nodes, present_declaration, with_nodes
from ebbtide_rehearsal.replay.scheduler import Decision, Forwarding, Scheduler, Schedulers
from ebbtide_rehearsal.replay.simulation import simulate
from ebbtide_rehearsal.replay.trace import Trace, TraceJob

VERSION: Final = "ebbtide.dev/start/v1"
"""Version of the document of `--when --format json`."""

_DRAWS: Final = 10
"""Replays with drawn run times and startup times, besides one with the longest run times."""
_ENOUGH: Final = 3
"""Number of earlier runs from which a job's time limit is no longer taken for a possible run time."""
_HORIZON: Final = 30 * 86400.0
_NEVER: Final = float("inf")
_NAMED: Final = 3
_AT_ONCE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When a job starts.

    Attributes:
        namespace: its namespace.
        name: its name.
        queue: its queue; empty for none.
        position: its position among the waiting jobs of its queue, from 1.
        half: median of the seconds until it starts; None if it cannot be known.
        least: the shortest time.
        most: the longest time; None if a replay of 30 days does not reach it.
        node: part of the median that is the wait for nodes.
        limits: number of jobs whose run time is from their time limit.
        histories: number of jobs whose run time is from earlier runs.
        problem: why it cannot be known, or why it never starts, as a sentence; empty if it is known.
    """

    namespace: str
    name: str
    queue: str = ""
    position: int = 1
    half: float | None = None
    least: float = 0.0
    most: float | None = None
    node: float = 0.0
    limits: int = 0
    histories: int = 0
    problem: str = ""

    @property
    def time(self) -> str:
        """The time as a clause after `starts`; empty if it cannot be known."""
        if self.half is None:
            return ""
        if self.most is not None and self.most < _AT_ONCE:
            return "at once: quota and a node are available"
        about, least = durations.approximate(self.half), durations.approximate(self.least)
        most = durations.approximate(self.most) if self.most is not None else "more than 30 days"
        node = durations.approximate(self.node)
        return (
            f"in about {about}{f' ({least} to {most})' if least != most else ''}"
            f"{f'; a node takes {node} of it' if self.node >= _AT_ONCE else ''}"
        )

    @property
    def basis(self) -> str:
        """A sentence about the run times that it is from; empty if it depends on none."""
        sources = [
            *([several(self.limits, "time limit")] if self.limits else ()),
            *([f"earlier runs of {several(self.histories, 'job')}"] if self.histories else ()),
        ]
        return f"Run times are from {and_list(sources)}." if sources else ""

    def document(self) -> dict[str, Any]:
        """Return it as a part of a document."""
        known = self.half is not None
        return {
            "seconds": {"median": self.half, "least": self.least, "most": self.most} if known else None,
            "nodeSeconds": self.node if known else None,
            "position": self.position if self.queue else None,
            "problem": self.problem,
        }


class _PresentCloud(Cloud):
    """A cloud in which the existing nodes are ready at the beginning."""

    def __init__(self, seed: int, nodes: Mapping[str, int], running: Collection[str]) -> None:
        super().__init__(CloudModel(), {}, seed, 0.0)
        self._nodes, self._running = nodes, running

    def startup_seconds(self, pool: NodePool, node: str) -> float:
        """Return zero for existing nodes, which are ordered first."""
        number = int(node.rpartition("-")[2])
        return 0.0 if number <= self._nodes.get(pool.name, 0) else super().startup_seconds(pool, node)

    def queued_seconds(self, request: str) -> float:
        """Return zero for the nodes of running jobs."""
        return 0.0 if request in self._running else super().queued_seconds(request)


class _Noting(Forwarding):
    """A scheduler whose decisions about quota are noted."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.reserved: dict[str, float] = {}

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Decide, and note when each job first has quota."""
        decisions = self._scheduler.step(at, before)
        for decision in decisions:
            if decision.kind in ("reserved", "admitted"):
                self.reserved.setdefault(decision.job, decision.at)
        return decisions


@dataclass(slots=True)
class _State:
    """The present state as work of a replay.

    Attributes:
        declaration: the declaration, with the existing nodes.
        nodes: number of existing nodes by pool.
        jobs: the jobs by the name of their work.
        work: the work: with quota first, then waiting, then planned.
        running: names of the work with quota.
        unplaced: work of which the declaration lacks the queue or the pool.
    """

    declaration: Declaration
    nodes: Mapping[str, int]
    jobs: dict[str, PresentJob] = field(default_factory=dict[str, PresentJob])
    work: list[Work] = field(default_factory=list[Work])
    running: set[str] = field(default_factory=set[str])
    unplaced: list[ExistingWork] = field(default_factory=list[ExistingWork])


def estimate(
    profile: Profile, present: Present, targets: Sequence[ExistingWork], schedulers: Schedulers
) -> list[Estimate]:
    """Return when some work starts; work that does not exist is added at the end of its queue.

    Args:
        profile: the cluster's profile.
        present: the state of its queues.
        targets: the work, existing or planned.
        schedulers: starts the scheduler.
    """
    state = _state(profile, present, targets)
    names = {id(state.jobs[work.name].work): work.name for work in state.work}
    awaited = [work.name for work in state.work if any(state.jobs[work.name].work is t for t in targets)]
    fitting = {work.name for work in state.work if not work.why_not}
    possible = [name for name in awaited if name in fitting]
    # Each waits for a process of its own most of the time.
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        one = partial(_replay, state, present.now, possible, schedulers=schedulers)
        replays = list(pool.map(one, range(_DRAWS + 1)))
    return [_estimated(state, names.get(id(target), ""), target, replays) for target in targets]


def _state(profile: Profile, present: Present, targets: Sequence[ExistingWork]) -> _State:
    declaration = present_declaration(profile, present)
    mapper = Mapper(declaration, Table(), own=True)
    existing = [job.work for job in present.jobs]
    planned = [present.job(target) for target in targets if not any(target is work for work in existing)]
    state = _State(declaration, {})
    placed: list[tuple[PresentJob, TraceJob]] = []
    for job in (*present.jobs, *planned):
        row = _row(job.work)
        if any(mapper.faults(row)):
            state.unplaced.append(job.work)
        else:
            placed.append((job, row))
    mapped = mapper.mapped(Trace("", "csv", [row for _, row in placed], 0.0)).work
    for (job, _), work in zip(placed, mapped, strict=True):
        has_quota = job.work.admitted is not None
        flavor = job.work.flavor if has_quota and job.work.flavor in declaration.flavors else ""
        state.jobs[work.name] = job
        state.work.append(replace(work, flavor=flavor, why_not="" if has_quota else work.why_not))
        if has_quota:
            state.running.add(work.name)
    started = [work for work in state.work if state.jobs[work.name].work.started is not None]
    needed = needed_nodes(declaration, [work for work in started if work.name in state.running])
    known = present.nodes or {}
    state.nodes = {pool: max(known.get(pool, 0), needed.get(pool, 0)) for pool in declaration.capacity}
    state.declaration = with_nodes(declaration, state.nodes)
    return state


def _row(work: ExistingWork) -> TraceJob:
    """Return work as a job of a trace, submitted now; its run time is drawn later."""
    requests = work.requests
    return TraceJob(
        line=0,
        name=work.name,
        submit=0.0,
        seconds=0.0,
        pods=requests.pods,
        cpu=requests.cpu or None,
        memory=requests.memory or None,
        gpus=requests.gpus,
        queue=f"{work.namespace}/{work.queue or requests.pool}",
        priority=work.priority,
        keep_node=requests.keep_node,
    )


def _replay(
    state: _State, now: float, awaited: Sequence[str], draw: int, schedulers: Schedulers
) -> dict[str, tuple[float | None, float]]:
    """Replay with drawn run times, or the longest ones with draw 0; return when each awaited job starts, and
    when it gets quota."""
    if not awaited:
        return {}
    random = Random(draw)  # noqa: S311 - a simulation
    work = [
        replace(
            item, job=replace(item.job, seconds=_left(state.jobs[item.name], now, random if draw else None))
        )
        for item in state.work
    ]
    with schedulers(state.declaration) as scheduler:
        noting = _Noting(scheduler)
        cloud = _PresentCloud(draw, state.nodes, state.running)
        outcome = simulate(state.declaration, work, noting, cloud, awaited=awaited, horizon=_HORIZON)
    started = {job.work.name: job.started for job in outcome.jobs}
    return {name: (started[name], noting.reserved.get(name, 0.0)) for name in awaited}


def _left(job: PresentJob, now: float, random: Random | None) -> float:
    """Return the run time that is left to a job: of an earlier run, or up to its time limit; infinite if
    neither is known. Without a generator, it is the longest."""
    done = now - job.work.started if job.work.admitted is not None and job.work.started is not None else 0.0
    possible, limit = [seconds - done for seconds in job.earlier if seconds > done], job.work.requests.limit
    if limit is not None:
        rest = limit - done if limit > done else float(limit)
        if not possible:
            return random.uniform(0.0, rest) if random else rest
        if len(possible) < _ENOUGH:
            possible.append(rest)
    if not possible:
        return _NEVER
    return random.choice(possible) if random else max(possible)


def _estimated(
    state: _State,
    name: str,
    target: ExistingWork,
    replays: Iterable[Mapping[str, tuple[float | None, float]]],
) -> Estimate:
    where = target.queue or target.requests.pool
    found = Estimate(namespace=target.namespace, name=target.name, queue=target.queue)
    if not name:
        kind = "queue" if target.queue else "pool"
        problem = f"The cluster has no {kind} {where}." if where else "It names no queue and no pool."
        return replace(found, problem=problem)
    work = next(item for item in state.work if item.name == name)
    found = replace(found, position=_position(state, work))
    if work.why_not:
        return replace(found, problem=f"It never starts: {work.why_not}.")
    others = [state.jobs[item.name] for item in _others(state, work)]
    longest, *drawn = [replay[name] for replay in replays]
    starts = [at if at is not None else _NEVER for at, _ in drawn]
    half = median(starts)
    if half == _NEVER:
        return replace(found, problem=_unknown(others))
    ends = [at for at, _ in (longest, *drawn)]
    nodes = [at - since for at, since in drawn if at is not None]
    return replace(
        found,
        half=half,
        least=min(at for at in ends if at is not None),
        most=None if None in ends else max(at for at in ends if at is not None),
        node=min(half, median(nodes)),
        limits=sum(job.work.requests.limit is not None and len(job.earlier) < _ENOUGH for job in others),
        histories=sum(bool(job.earlier) for job in others),
    )


def _others(state: _State, work: Work) -> Iterator[Work]:
    """Yield the other work on the pools of a job."""
    pools = set(work.queue.pools)
    return (item for item in state.work if item.name != work.name and pools & set(item.queue.pools))


def _position(state: _State, work: Work) -> int:
    """Return the position of a job among the waiting ones of its queue: by priority, then by creation."""
    numbers = {item.name: number for number, item in enumerate(state.work)}
    own = -work.priority, numbers[work.name]
    waiting = (item for item in state.work if item.queue == work.queue and item.name not in state.running)
    return 1 + sum((-item.priority, numbers[item.name]) < own for item in waiting)


def _unknown(others: Iterable[PresentJob]) -> str:
    """Return why the start of a job is not known."""
    endless = [job.work for job in others if not job.earlier and job.work.requests.limit is None]
    if not endless:
        return "It does not start within 30 days."
    more = f" and {len(endless) - _NAMED} more" if len(endless) > _NAMED else ""
    names = and_list(f"{work.namespace}/{work.name}" for work in endless[:_NAMED])
    has = "has" if len(endless) == 1 else "have"
    return (
        f"It cannot be known: {names}{more} {has} no time limit, and no earlier run. --max-run sets one for "
        "new Jobs."
    )
