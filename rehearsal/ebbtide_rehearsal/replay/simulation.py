"""Replay of jobs: Kueue decides who runs, node pools when, on one virtual clock."""

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.replay.cloud_model import Cloud
from ebbtide_rehearsal.replay.decisions import Decision, Scheduler
from ebbtide_rehearsal.replay.declared import Declaration
from ebbtide_rehearsal.replay.mapping import Work
from ebbtide_rehearsal.replay.nodes import Nodes
from ebbtide_rehearsal.replay.outcome import JobOutcome, Outcome
from ebbtide_rehearsal.replay.runs import Lost, Run
from ebbtide_rehearsal.replay.unqueued import Unqueued

_DAY: Final = 86400.0
_MONTH: Final = 30 * _DAY
_LONGEST: Final = 250 * 365 * _DAY
"""Latest end of a replay, seconds: Kueue's process counts nanoseconds in 64 bits, which are 292 years."""
_MOST_INTERRUPTIONS: Final = 100
_NO_NODES: Final = "it was still waiting for nodes when nothing more could happen"
_NO_END: Final = "it had not ended after 250 years"


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
        self._progress = max((one.job.submit for one in work), default=0.0)
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
                state.outcome.why_not = _NO_END if now > _LONGEST else pending.get(name) or _NO_NODES
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

    def used(self, run: Run, pool: str, hours: float, usd: float) -> None:
        """Record the cost of a job's part of a node."""
        del pool, hours
        self.outcome.team_usd[self._states[run.name].outcome.work.queue.team] += usd


def simulate(
    declaration: Declaration,
    work: Sequence[Work],
    scheduler: Scheduler,
    cloud: Cloud,
    *,
    awaited: Collection[str] = (),
    horizon: float = _LONGEST,
) -> Outcome:
    """Replay jobs on a declaration.

    Args:
        declaration: the declaration.
        work: the jobs, by time of submission.
        scheduler: Kueue with the declaration's objects.
        cloud: the cloud's delays, stock and reclaims.
        awaited: names of jobs that fit; the replay ends when all of them have started. Empty: when all end.
        horizon: latest end, seconds.
    """
    is_mixed = any(one.queue.is_pool for one in work)
    replayed = _Replay(declaration, work, Unqueued(scheduler) if is_mixed else scheduler, cloud)
    return replayed.run(awaited, horizon)
