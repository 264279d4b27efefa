"""A first-in, first-out scheduler for the tests of replays: quota alone, no cohorts, no preemption."""

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pytest
from rich.console import Console

import kueue_replay
from kueue_replay.cloud_model import Cloud, CloudModel
from kueue_replay.cluster import Accelerator, Cluster, Declaration, Pool
from kueue_replay.mapping import Mapper, Table, Work
from kueue_replay.replays import Replay, Request, Result
from kueue_replay.scheduler import Decision, Schedulers
from kueue_replay.simulation import Outcome, simulate
from kueue_replay.trace import Trace, TraceJob


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
            (flavor, *_) = (
                one for one in self._declaration.flavors.values() if work.queue.pools[0] in one.pools
            )
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

    def program(_: Console) -> Schedulers:
        return first_in

    monkeypatch.setattr(kueue_replay, "program", program)


@contextmanager
def first_in(declaration: Declaration) -> Generator[FirstIn]:
    """Start a scheduler with a declaration."""
    yield FirstIn(declaration)


def _queue(team: str, pool: str) -> Iterator[dict[str, Any]]:
    """A ClusterQueue with the flavor of a pool, and its LocalQueue."""
    groups: list[dict[str, Any]] = [{"flavors": [{"name": pool}]}]
    name = f"{team}.{pool}"
    yield {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": {"resourceGroups": groups}}
    metadata = {"name": pool, "namespace": team}
    yield {"kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}


def a_cluster(name: str = "dev", maximum: int = 2, **changes: Any) -> Cluster:
    """A cluster with a spot pool of four T4 a node, a CPU pool and a queued pool, and a queue for each."""
    shared: dict[str, Any] = {
        "machine": "n2-standard-4",
        "region": "us-central1",
        "zones": ("us-central1-a",),
    }
    t4: dict[str, Any] = {"hourly": 0.5, **shared, **changes}
    pools = (
        Pool(
            name="t4",
            capacity="spot",
            labels={"pool": "t4"},
            cpu=8000,
            memory=32768,
            accelerator=Accelerator(type="nvidia-tesla-t4", count=4),
            maximum=maximum,
            **t4,
        ),
        Pool(
            name="cpu",
            capacity="spot",
            labels={"pool": "cpu"},
            cpu=4000,
            memory=16384,
            maximum=10,
            hourly=0.1,
            **shared,
        ),
        Pool(
            name="queued",
            capacity="queued",
            labels={"pool": "queued"},
            cpu=12000,
            memory=81920,
            accelerator=Accelerator(type="nvidia-tesla-a100", count=1),
            maximum=10,
            max_run_seconds=604800,
            hourly=2.0,
            **shared,
        ),
    )
    objects: list[dict[str, Any]] = [
        {"kind": "ResourceFlavor", "metadata": {"name": pool.name}, "spec": {"nodeLabels": pool.labels}}
        for pool in pools
    ]
    for team, pool in (("vision", "t4"), ("vision", "cpu"), ("speech", "queued")):
        objects += _queue(team, pool)
    objects.append({"kind": "WorkloadPriorityClass", "metadata": {"name": "ebbtide-high"}, "value": 1000})
    return Cluster(name=name, pools=pools, objects=tuple(objects))


def a_declaration(name: str = "dev", maximum: int = 2, **changes: Any) -> Declaration:
    """That cluster with what follows from its objects."""
    return Declaration.of(a_cluster(name, maximum, **changes))


def a_model(**changes: Any) -> CloudModel:
    """A model without spread and reclaims, whose nodes start in 100 s."""
    still: dict[str, Any] = {
        "startup": {"seconds": 100, "spread": 0, "driver_seconds": 0},
        "queued_wait": {"seconds": 600, "spread": 0},
        "reclaims": {},
    }
    return CloudModel.model_validate(still | changes)


def simulated(
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


def a_request(jobs: Iterable[TraceJob], *clusters: Cluster, **fields: Any) -> Request:
    """Return a request to replay jobs on clusters."""
    rows = list(map(asdict, jobs))
    given = {"clusters": clusters or (a_cluster(),), "jobs": rows, "cloud_model": a_model()}
    return Request.model_validate(given | fields)


def replayed(jobs: Iterable[TraceJob], *clusters: Cluster, **fields: Any) -> Result:
    """Replay jobs on clusters with the first-in, first-out scheduler."""
    return Replay(a_request(jobs, *clusters, **fields)).run(first_in)
