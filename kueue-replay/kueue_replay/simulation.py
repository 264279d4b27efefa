"""Replay of jobs: Kueue decides who runs, node pools when, on one virtual clock; and its outcome."""

import heapq
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from ebbtide.autoscaler.nodes import Machine
from ebbtide_rehearsal.cloud.store import Event
from ebbtide_rehearsal.report.document import Ledger, Series, ledger
from kueue_replay.cloud_model import Cloud
from kueue_replay.cluster import Declaration
from kueue_replay.mapping import Work
from kueue_replay.nodes import Lost, Nodes, Run
from kueue_replay.scheduler import Decision, Scheduler, Unqueued

_DAY: Final = 86400.0
_MONTH: Final = 30 * _DAY
LONGEST: Final = 250 * 365 * _DAY
"""Latest end of a replay, seconds: Kueue's process counts nanoseconds in 64 bits, which are 292 years."""
_MOST_INTERRUPTIONS: Final = 100
_NO_NODES: Final = "it was still waiting for nodes when nothing more could happen"
_NO_END: Final = "it had not ended after 250 years"


@dataclass(slots=True)
class JobOutcome:
    """Outcome of a job.

    Attributes:
        reserved: time at which it first had quota, seconds; None for never.
        started: time at which all of its pods first ran; None for never.
        ended: time of its end, seconds; None for never.
        preemptions: how often Kueue evicted it while it ran.
        interruptions: how often it lost a node or failed, by cause.
        lost: seconds of work that were repeated.
        why_not: why it never ran; empty if it did.
    """

    work: Work
    reserved: float | None = None
    started: float | None = None
    ended: float | None = None
    preemptions: int = 0
    interruptions: Counter[str] = field(default_factory=Counter[str])
    lost: float = 0.0
    why_not: str = ""

    @property
    def waited(self) -> float | None:
        """Seconds from submission until its first run."""
        return None if self.started is None else self.started - self.work.job.submit

    @property
    def missed(self) -> bool:
        """Return whether the job missed its deadline."""
        deadline = self.work.job.deadline
        return deadline is not None and (self.ended is None or self.ended > deadline)


@dataclass(slots=True)
class Outcome:
    """The outcome of one replay; times in seconds since the first submission.

    Attributes:
        events: nodes that were added and removed, as in a rehearsal's timeline.
        end: time at which nothing more happened.
        reclaims: times of reclaims by pool.
        refusals: times of stock-outs by pool.
        busy_hours: node hours with a pod by pool.
        team_usd: US dollars of the used parts of nodes by team.
    """

    declaration: Declaration
    jobs: Sequence[JobOutcome]
    events: list[Event] = field(default_factory=list[Event])
    end: float = 0.0
    reclaims: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    refusals: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    busy_hours: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    team_usd: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def node(self, at: float, machine: Machine, kind: str) -> None:
        """Record that a machine was added or removed."""
        facts = {"pool": machine.pool, "node": machine.name, "hourly": machine.hourly}
        self.events.append(Event(len(self.events), at, kind, "", facts))

    def costs(self, until: float) -> Ledger:
        """Return the cost until a time: nodes that exist at the end exist until then."""
        created = Event(0, 0.0, "cluster-created", "", {"id": self.declaration.name})
        return ledger([created, *self.events], until, self.declaration.rates)

    def node_hours(self, until: float) -> dict[str, float]:
        """Return the node hours of each pool until a time."""
        hours: dict[str, float] = {}
        for pool in self.declaration.pools:
            counts = self.nodes(pool.name)
            total = sum(count * (later - at) for (at, count), (later, _) in pairwise(counts))
            hours[pool.name] = (total + counts[-1][1] * max(0.0, until - counts[-1][0])) / 3600
        return hours

    def nodes(self, pool: str) -> Series:
        """Return the number of a pool's nodes over time."""
        changes = (
            (event.at, 1 if event.kind == "node-added" else -1)
            for event in self.events
            if event.facts["pool"] == pool
        )
        return _summed(changes)

    def waiting(self) -> Series:
        """Return the number of waiting jobs over time, without those that never fit."""
        return _summed(
            change
            for job in self.jobs
            if not job.work.why_not
            for change in (
                (job.work.job.submit, 1),
                *(() if job.started is None else ((job.started, -1),)),
            )
        )


def _summed(changes: Iterable[tuple[float, int]]) -> Series:
    """Return a count over time from its changes."""
    by_time = Counter[float]()
    for at, change in changes:
        by_time[at] += change
    count = 0
    series: list[tuple[float, float]] = [(0.0, 0.0)]
    for at, change in sorted(by_time.items()):
        count += change
        series.append((at, float(count)))
    return series


def thinned(series: Series, most: int, end: float) -> list[tuple[float, float]]:
    """Return a series with a limited number of points, each the largest value of its part of the time."""
    if len(series) <= most:
        return list(series)
    times = [at for at, _ in series]
    step = end / most
    points: list[tuple[float, float]] = []
    for number in range(most):
        first, last = bisect_right(times, number * step) - 1, bisect_right(times, (number + 1) * step) - 1
        points.append((number * step, max(value for _, value in series[max(0, first) : last + 1])))
    return points


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the value that a share of the values does not exceed; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return median(ordered) if share == 1 / 2 else ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def waits(jobs: Iterable[JobOutcome]) -> list[float]:
    """Return the waiting times of the jobs that ran."""
    return [job.waited for job in jobs if job.waited is not None]


def sizes(jobs: Iterable[JobOutcome]) -> Iterator[tuple[str, JobOutcome]]:
    """Yield each job with its size: its accelerators, or its pods without any, in powers of two."""
    for job in jobs:
        total = job.work.shape.gpus * job.work.pods
        unit = "GPU" if total else "CPU"
        count = total or max(1, round(job.work.shape.cpu * job.work.pods / 1000))
        low = 1 << (count.bit_length() - 1)
        high = 2 * low - 1
        label = f"{low}" if low == high else f"{low} to {high}"
        yield f"{label} {unit if low == high == 1 else unit + 's'}", job


@dataclass(slots=True)
class _State:
    """A job on its way."""

    outcome: JobOutcome
    run: Run | None = None
    done: float = 0.0
    since: float = 0.0
    version: int = 0


class _Replay:
    """One replay; receives what happens to nodes (`Watch`)."""

    def __init__(
        self, declaration: Declaration, work: Sequence[Work], scheduler: Scheduler, cloud: Cloud
    ) -> None:
        self._declaration, self._scheduler, self._cloud = declaration, scheduler, cloud
        jobs = [JobOutcome(one, why_not=one.why_not) for one in work]
        self.outcome = Outcome(declaration, jobs)
        self._states = {job.work.name: _State(job) for job in jobs if not job.why_not}
        self._left = len(self._states)
        self._ends: list[tuple[float, str, int, bool]] = []
        self._checked: list[tuple[float, str, str]] = []
        self._failed: list[_State] = []
        begins = (pool.reserved[0] for pool in declaration.pools if pool.reserved)
        self._progress = max((*(one.job.submit for one in work), *begins), default=0.0)
        self._nodes = Nodes(declaration.pools, declaration.capacity, cloud, self)

    def run(self, awaited: Collection[str], horizon: float) -> Outcome:
        """Replay all jobs, or until some have started, or until a time."""
        for state in self._states.values():
            self._scheduler.submit(state.outcome.work)
        now = 0.0
        while self._left or self._is_shrinking(now):
            following = min(self._next_time(), self._scheduler.next_time())
            if following == math.inf:
                break
            now = following
            if now > horizon or (self._left and self._is_stuck(now)):
                break
            self._nodes.advance(now)
            self._end_jobs(now)
            now = self._decide(now, horizon)
            if awaited and all(self._states[name].outcome.started is not None for name in awaited):
                break
        pending = self._scheduler.pending()
        for name, state in self._states.items():
            if state.outcome.ended is None and not state.outcome.why_not:
                state.outcome.why_not = _NO_END if now > LONGEST else pending.get(name) or _NO_NODES
        self.outcome.end = now
        for machine in self._nodes.machines():
            self.outcome.busy_hours[machine.pool] += self._nodes.busy_seconds(machine, now) / 3600
        return self.outcome

    def _next_time(self) -> float:
        """Return the time of the next end or event of nodes; infinite for none."""
        return min(self._ends[0][0] if self._ends else math.inf, self._nodes.next_time())

    def _is_shrinking(self, now: float) -> bool:
        """Return whether nodes above a pool's minimum exist, which the autoscaler may still remove; those
        that are reclaimed and created again within its delay it never does."""
        model = self._cloud.model
        if now > self._progress + 2 * (model.scale_down_seconds + model.scale_down_delay_seconds):
            return False
        count = sum(1 for _ in self._nodes.machines())
        least = sum(pool.minimum if pool.autoscaled else pool.initial for pool in self._declaration.pools)
        return count > least

    def _is_stuck(self, now: float) -> bool:
        """Return whether nothing has started or ended for so long that nothing more will."""
        is_held = any(state.run for state in self._states.values()) if now > self._progress + _DAY else True
        return not self._ends and now > self._progress + (_MONTH if is_held else _DAY)

    def _decide(self, now: float, horizon: float) -> float:
        """Give the scheduler what happened, and apply its decisions until the next other event.

        Returns:
            the time of the last decision.
        """
        while True:
            checks, self._checked = self._checked, []
            for _, job, failure in checks:
                self._scheduler.checked(now, job, failure)
            # A day later, it may turn out that nothing happens any more.
            before = min(self._next_time(), horizon, self._progress + _DAY)
            decisions = self._scheduler.step(now, before)
            for decision in decisions:
                now = max(now, decision.at)
                self._apply(now, decision)
            if not (decisions or self._checked):
                return now

    def _apply(self, now: float, decision: Decision) -> None:
        state = self._states[decision.job]
        if decision.kind in ("reserved", "admitted") and state.outcome.reserved is None:
            state.outcome.reserved = decision.at
        match decision.kind:
            case "reserved":
                self._nodes.provision(now, self._run(state, decision.flavor))
            case "admitted":
                self._nodes.admit(now, state.run or self._run(state, decision.flavor))
            case "deactivated":
                state.outcome.why_not = "Kueue has deactivated it after its last retry"
                self._left -= 1
            case "evicted" if state.run is not None:
                if state.run.started:
                    state.outcome.preemptions += 1
                    self._lose_work(now, state)
                self._nodes.release(now, state.run)
                state.run = None
            case _:
                pass

    def _run(self, state: _State, flavor: str) -> Run:
        work = state.outcome.work
        if work.queue.is_pool:
            state.run = Run(work.name, work.queue.pools, work.pods, work.shape, keep_node=work.job.keep_node)
            return state.run
        chosen = self._declaration.flavors[flavor]
        pools = tuple(
            name
            for name in chosen.pools
            if not work.accelerator or self._declaration.accelerators[name] == work.accelerator
        )
        state.run = Run(
            work.name,
            pools or chosen.pools,
            work.pods,
            work.shape,
            queued=chosen.queued,
            keep_node=work.job.keep_node,
        )
        return state.run

    def _end_jobs(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            at, name, version, fails = heapq.heappop(self._ends)
            state = self._states[name]
            if version != state.version or state.run is None:
                continue
            if fails:
                self._interrupt(at, state, "failure")
                self._nodes.restart(at, state.run)
                continue
            state.outcome.ended = at
            self._finish(now, state)
        failed, self._failed = self._failed, []
        for state in failed:
            state.outcome.why_not = f"it was interrupted {_MOST_INTERRUPTIONS} times"
            self._finish(now, state)

    def _finish(self, now: float, state: _State) -> None:
        state.version += 1
        self._left -= 1
        if state.run:
            self._nodes.release(now, state.run)
        state.run = None
        self._scheduler.finish(now, state.outcome.work.name)
        self._progress = max(self._progress, now)

    def _interrupt(self, now: float, state: _State, why: str) -> None:
        """Interrupt a job; it fails for good after many interruptions."""
        state.outcome.interruptions[why] += 1
        self._lose_work(now, state)
        self._scheduler.ready(now, state.outcome.work.name, ready=False)
        if state.outcome.interruptions.total() == _MOST_INTERRUPTIONS:
            self._failed.append(state)

    def _lose_work(self, now: float, state: _State) -> None:
        """Lose the work since the last checkpoint."""
        state.version += 1
        done = state.done + now - state.since
        interval = state.outcome.work.job.checkpoint
        state.done = min(done, math.floor(done / interval) * interval) if interval else 0.0
        state.outcome.lost += done - state.done

    # What happens to nodes

    def started(self, at: float, run: Run) -> None:
        """Start a job's remaining work."""
        state = self._states[run.name]
        if state.outcome.started is None:
            state.outcome.started = at
        state.since = at
        self._progress = max(self._progress, at)
        self._scheduler.ready(at, run.name, ready=True)
        state.version += 1
        end = at + max(0.0, state.outcome.work.job.seconds - state.done)
        failure = self._cloud.failure_at(f"{run.name}/{state.version}", at)
        heapq.heappush(self._ends, (min(end, failure), run.name, state.version, failure < end))

    def lost(self, at: float, run: Run, why: Lost) -> None:
        """Interrupt a job whose node is gone."""
        self._interrupt(at, self._states[run.name], why)

    def provisioned(self, at: float, run: Run, failure: str) -> None:
        """Tell the scheduler that a job's nodes are ready, or why not."""
        self._checked.append((at, run.name, failure))

    def node_added(self, at: float, machine: Machine) -> None:
        """Record a machine."""
        self.outcome.node(at, machine, "node-added")

    def node_removed(self, at: float, machine: Machine, busy_seconds: float) -> None:
        """Record the end of a machine."""
        self.outcome.node(at, machine, "node-removed")
        self.outcome.busy_hours[machine.pool] += busy_seconds / 3600

    def reclaimed(self, at: float, machine: Machine) -> None:
        """Record a reclaim."""
        self.outcome.reclaims[machine.pool].append(at)

    def refused(self, at: float, pool: str) -> None:
        """Record a stock-out."""
        self.outcome.refusals[pool].append(at)

    def used(self, run: Run, usd: float) -> None:
        """Record the cost of a job's part of a node."""
        self.outcome.team_usd[self._states[run.name].outcome.work.queue.team] += usd


def simulate(
    declaration: Declaration,
    work: Sequence[Work],
    scheduler: Scheduler,
    cloud: Cloud,
    *,
    awaited: Collection[str] = (),
    horizon: float = LONGEST,
) -> Outcome:
    """Replay jobs on a declaration.

    Args:
        work: the jobs, by time of submission.
        scheduler: Kueue with the declaration's objects.
        cloud: the cloud's delays, stock and reclaims.
        awaited: names of jobs that fit; the replay ends when all of them have started. Empty: when all end.
        horizon: latest end, seconds.
    """
    is_mixed = any(one.queue.is_pool for one in work)
    replayed = _Replay(declaration, work, Unqueued(scheduler) if is_mixed else scheduler, cloud)
    return replayed.run(awaited, horizon)
