"""A first-in, first-out scheduler for the tests of replays: quota alone, no cohorts, no preemption."""

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal import tools
from ebbtide_rehearsal.replay import scheduler
from ebbtide_rehearsal.replay.cloud_model import Cloud, CloudModel
from ebbtide_rehearsal.replay.declared import Declaration, Flavor, LocalQueue
from ebbtide_rehearsal.replay.kueue import PROGRAM
from ebbtide_rehearsal.replay.mapping import Mapper, Table, Work
from ebbtide_rehearsal.replay.nodes import Shape
from ebbtide_rehearsal.replay.scheduler import Decision, Schedulers
from ebbtide_rehearsal.replay.simulation import Outcome, simulate
from ebbtide_rehearsal.replay.trace import Trace, TraceJob
from ebbtide_rehearsal.report.cost import Rates
from ebbtide_rehearsal.tools import AvailableTool, OnStep, Origin, Tools
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_pool


class FirstIn:
    """Admits jobs in order of submission while their pool's accelerators, or CPUs, suffice."""

    def __init__(self, declaration: Declaration) -> None:
        """Start with the capacity of all pools free."""
        self._declaration = declaration
        self._submits: list[Work] = []
        self._waiting: list[Work] = []
        self._reserved: dict[str, tuple[Work, str]] = {}
        self._decisions: list[Decision] = []
        self.retries: list[tuple[float, str]] = []

    def submit(self, work: Work) -> None:
        """Queue a job at its time."""
        self._submits.append(work)

    def finish(self, at: float, job: str) -> None:
        """Free a job's quota."""
        del at
        del self._reserved[job]

    def ready(self, at: float, job: str, *, ready: bool) -> None:
        """Ignore pods."""

    def checked(self, at: float, job: str, failure: str) -> None:
        """Admit a checked job, or queue it again."""
        work, flavor = self._reserved[job]
        if failure:
            del self._reserved[job]
            self._decisions.append(Decision("evicted", job, at, reason="AdmissionCheck"))
            self._waiting.append(work)
            self.retries.append((at, failure))
        else:
            self._decisions.append(Decision("admitted", job, at, flavor))

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Reserve quota for the first jobs that fit; nothing changes later."""
        del before
        while self.next_time() <= at:
            self._waiting.append(self._submits.pop(0))
        decisions, self._decisions = self._decisions, []
        if any(decision.kind == "evicted" for decision in decisions):
            return decisions
        for work in list(self._waiting):
            flavor = self._declaration.flavors[work.queue.pools[0]]
            used = sum(
                other.pods * (other.shape.gpus or other.shape.cpu)
                for other, name in self._reserved.values()
                if name == flavor.name
            )
            pool = self._declaration.pool(work.queue.pools[0])
            node = self._declaration.capacity[pool.name]
            need = work.pods * (work.shape.gpus or work.shape.cpu)
            if used + need > pool.maximum * (node.gpus if work.shape.gpus else node.cpu):
                continue
            self._waiting.remove(work)
            self._reserved[work.name] = work, flavor.name
            kind = "reserved" if flavor.queued else "admitted"
            decisions.append(Decision(kind, work.name, at, flavor.name))
        return decisions

    def next_time(self) -> float:
        """Return the time of the next job; nothing is retried."""
        return self._submits[0].job.submit if self._submits else math.inf

    def pending(self) -> Mapping[str, str]:
        """Return the queued jobs."""
        return {work.name: "insufficient quota" for work in self._waiting}


def use_first_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands schedule by quota alone, without Kueue's program."""

    def found(names: Iterable[str], *, on_step: OnStep) -> Tools:
        del names, on_step
        return Tools({PROGRAM: AvailableTool(PROGRAM, "0", Origin.CACHE, Path(PROGRAM))})

    def schedulers(program: Path) -> Schedulers:
        del program
        return first_in

    monkeypatch.setattr(tools, "ensure", found)
    monkeypatch.setattr(scheduler, "schedulers", schedulers)


@contextmanager
def first_in(declaration: Declaration) -> Generator[FirstIn]:
    """Start a scheduler with a declaration."""
    yield FirstIn(declaration)


def a_declaration(name: str = "dev", maximum: int = 2, **changes: Any) -> Declaration:
    """A cluster with a spot pool of four T4 a node, a CPU pool and a queued pool, and a queue for each."""
    t4 = a_gpu_pool(
        "t4",
        accelerator=("nvidia-tesla-t4", 4),
        allocatable={"cpu": "8", "memory": "32Gi"},
        maximum=maximum,
        **changes,
    )
    cpu = a_pool("cpu", allocatable={"cpu": "4", "memory": "16Gi"})
    queued = a_gpu_pool(
        "queued",
        capacity="queued",
        accelerator=("nvidia-tesla-a100", 1),
        allocatable={"cpu": "12", "memory": "80Gi"},
        max_run_seconds=604800,
        hourly=2.0,
    )
    pools = (t4, cpu, queued)
    return Declaration(
        name=name,
        pools=pools,
        capacity={
            "t4": Shape(8000, 32768, 4, "nvidia.com/gpu"),
            "cpu": Shape(4000, 16384),
            "queued": Shape(12000, 81920, 1, "nvidia.com/gpu"),
        },
        accelerators={pool.name: pool.accelerator[0] if pool.accelerator else "" for pool in pools},
        objects=(),
        queues={
            f"{team}/{pool}": LocalQueue(f"{team}/{pool}", f"{team}.{pool}", (pool,))
            for team, pool in (("vision", "t4"), ("vision", "cpu"), ("speech", "queued"))
        },
        flavors={pool.name: Flavor(pool.name, (pool.name,), pool.capacity == "queued") for pool in pools},
        priorities={"ebbtide-high": 1000},
        rates=Rates(),
        work_pools=tuple(pool.name for pool in pools),
    )


def a_model(**changes: Any) -> CloudModel:
    """A model without spread and reclaims, whose nodes start in 100 s."""
    still: dict[str, Any] = {
        "startup": {"seconds": 100, "spread": 0, "driver_seconds": 0},
        "queued_wait": {"seconds": 600, "spread": 0},
        "reclaims": {},
    }
    return CloudModel.model_validate(still | changes)


def replay(
    declaration: Declaration,
    *jobs: TraceJob,
    model: CloudModel | None = None,
    seed: int = 1,
    quota: Declaration | None = None,
) -> Outcome:
    """Replay jobs on a declaration with the first-in, first-out scheduler, which has its quota, or that of
    another one."""
    trace = Trace("jobs.csv", "csv", jobs, 0.0)
    work = Mapper(declaration, Table(), own=True).mapped(trace).work
    return simulate(
        declaration, work, FirstIn(quota or declaration), Cloud(model or a_model(), {}, seed, 0.0)
    )
