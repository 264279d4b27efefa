"""Jobs of a trace on a declaration: their queue, pods and requests, with a table that a file changes."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from ebbtide.declaration.model.shape.findings import shape_faults
from ebbtide.declaration.project import yaml_file
from ebbtide.text import did_you_mean, or_list, several
from kueue_replay.cluster import Declaration, LocalQueue, Part, Shape
from kueue_replay.trace import Trace, TraceError, TraceJob

ANY: Final = "*"
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_SMALLEST: Final = 10
"""Requests are rounded up to multiples of it, in MiB and millicores, unless fewer pods would fit a node."""


_NO_QUEUE: Final = LocalQueue("", "", ())


class Table(Part):
    """Names of a trace as names of a declaration. `*` is the entry for all other names."""

    queues: dict[str, str] = Field(default_factory=dict[str, str])
    """LocalQueues, as `namespace/name`, by the trace's queues; the key of jobs without one is empty."""
    gpu_types: dict[str, str] = Field(default_factory=dict[str, str])
    """Types of accelerators by the trace's; `any` for all of the queue's."""


def read_table(path: Path) -> Table:
    """Read a table.

    Raises:
        TraceError: the file is invalid; the message has every fault.
    """
    try:
        written = yaml_file.read(path).value
    except (yaml_file.YamlFileError, OSError) as error:
        raise TraceError(f"{path}: {error}") from error
    try:
        return Table.model_validate(written if written is not None else {})
    except ValidationError as error:
        faults = shape_faults(Table, error, written, "The table")
        raise TraceError("\n".join(f"{path}: {fault}" for fault in faults)) from error


@dataclass(frozen=True, slots=True)
class Work:
    """A job of a trace on a declaration.

    Attributes:
        accelerator: type of accelerators that its pods select; empty for any.
        why_not: why it never fits; empty if it does.
        flavor: ResourceFlavor that its pods select; empty for any.
    """

    number: int
    job: TraceJob
    queue: LocalQueue
    pods: int
    shape: Shape
    priority: int = 0
    accelerator: str = ""
    why_not: str = ""
    flavor: str = ""

    @property
    def name(self) -> str:
        """Unique name."""
        return f"job-{self.number}"


@dataclass(frozen=True, slots=True)
class Mapped:
    """Result of mapping a trace to queues.

    Attributes:
        work: the jobs, in the trace's order.
        rows: number of jobs by the trace's queue, its type of accelerators, and the LocalQueue.
        rounded_pods: number of jobs whose accelerators were rounded up to equal pods.
        shapes: number of jobs by their requests in the trace, and their pods, the most first.
    """

    work: Sequence[Work]
    rows: Mapping[tuple[str, str, str], int]
    rounded_pods: int
    shapes: Mapping[tuple[str, str], int]


@dataclass(slots=True)
class Mapper:
    """Maps the jobs of a trace to a declaration.

    Attributes:
        table: names of the trace as names of the declaration.
        own: whether the trace is written for this declaration, so that an unknown name is a fault.
        ends: whether jobs are to end, for which their nodes have to live long enough.
    """

    declaration: Declaration
    table: Table
    own: bool
    ends: bool = True
    _spread: dict[tuple[str, bool], LocalQueue] = field(default_factory=dict[tuple[str, bool], LocalQueue])

    def table_faults(self) -> Iterator[str]:
        """Yield the faults of the table: queues and accelerators that are not declared."""
        for name in self.table.queues.values():
            if self._named(name) is None:
                yield f"The table names queue {name}, which is not declared{self._queue_advice(name)}"
        types = {*self.declaration.accelerators.values()} - {""}
        for name in self.table.gpu_types.values():
            if name != "any" and name not in types:
                yield f"The table names accelerator {name}, which no pool has{did_you_mean(name, types)}"

    def faults(self, job: TraceJob) -> Iterator[str]:
        """Yield the faults of a job: names that the declaration lacks."""
        if self.own:
            if self._queue(job) is None:
                problem = f"No queue {job.queue} is declared" if job.queue else "The job has no queue"
                yield f"{problem}{self._queue_advice(job.queue)}"
            if job.gpu_type and self._accelerator(job) is None:
                types = or_list(sorted({*self.declaration.accelerators.values()} - {""}) or ["no type"])
                yield f"No pool has accelerators {job.gpu_type}. Write {types}, or map it with --map."
        if job.priority and job.priority not in self.declaration.priorities:
            known = self.declaration.priorities
            yield f"No priority {job.priority} is declared{did_you_mean(job.priority, known)}"

    def mapped(self, trace: Trace) -> Mapped:
        """Map all jobs of a trace without faults."""
        rows, rounded, work = Counter[tuple[str, str, str]](), 0, list[Work]()
        shapes = Counter[tuple[int | None, int, float | None, float | None, int, Shape]]()
        for number, job in enumerate(trace.jobs, start=1):
            fault = next(self.faults(job), "") if trace.format == "jobs" else ""
            one = (
                Work(number, job, _NO_QUEUE, 1, Shape(0, 0), why_not=fault)
                if fault
                else self._work(number, job)
            )
            work.append(one)
            rows[job.queue, job.gpu_type or ("any" if job.gpus else ""), one.queue.name] += 1
            rounded += job.pods is None and one.pods * one.shape.gpus > job.gpus
            shapes[job.pods, job.gpus, job.cpu, job.memory, one.pods, one.shape] += 1
        texts = Counter[tuple[str, str]]()
        for (pods, gpus, cpu, memory, count, shape), jobs in shapes.items():
            declared = requests(count, shape.gpus, shape.cpu / 1000, shape.memory * _MIB)
            texts[requests(pods, gpus, cpu, memory), declared] += jobs
        return Mapped(work, dict(sorted(rows.items())), rounded, dict(texts.most_common()))

    def _queue_advice(self, name: str) -> str:
        queues, pools = self.declaration.queues, self.declaration.work_pools
        near = did_you_mean(name, (*queues, *pools))
        declared = f"Declared are {', '.join(queues)}" if queues else "There are no queues"
        in_none = f"work in no queue names a pool: {', '.join(pools)}"
        return f"{near} {declared}; {in_none}. --map maps other names."

    def _named(self, name: str) -> LocalQueue | None:
        """Return a queue, or a pool for work in none, by its whole name."""
        return self.declaration.queues.get(name) or self.declaration.pool_queue(name)

    def _queue(self, job: TraceJob) -> LocalQueue | None:
        queues, table = self.declaration.queues, self.table.queues
        name = table.get(job.queue, job.queue)
        if name in queues:
            return queues[name]
        short = [queue for queue in queues.values() if queue.name.endswith(f"/{name}")]
        if len(short) == 1:
            return short[0]
        if pool := self.declaration.pool_queue(name):
            return pool
        if ANY in table:
            return self._named(table[ANY])
        if not job.queue and len(queues) == 1:
            return next(iter(queues.values()))
        return None if self.own else self._any_queue(job)

    def _every(self) -> list[LocalQueue]:
        """Return the queues, or the pools of a declaration without any."""
        pools = (self.declaration.pool_queue(name) for name in self.declaration.work_pools)
        return [*self.declaration.queues.values()] or [pool for pool in pools if pool]

    def _any_queue(self, job: TraceJob) -> LocalQueue | None:
        """Return the queue for a name of a public trace: its names take turns among the queues whose pools
        have accelerators, or none, as the job needs."""
        key = job.queue, job.gpus > 0
        if key not in self._spread:
            accelerators, every = self.declaration.accelerators, self._every()
            fitting = [
                queue for queue in every if any(bool(accelerators[pool]) == key[1] for pool in queue.pools)
            ] or [queue for queue in every if not all(map(self._is_for_gpus, queue.pools))]
            fitting = fitting or every
            taken = sum(gpu == key[1] for _, gpu in self._spread)
            self._spread[key] = fitting[taken % len(fitting)]
        return self._spread[key]

    def _is_for_gpus(self, name: str) -> bool:
        """Return whether a pool's nodes are requested only for pods with its accelerators, as Ebbtide's
        admission checks do."""
        pool = self.declaration.pool(name)
        return pool.capacity == "queued" and pool.accelerator is not None

    def _accelerator(self, job: TraceJob) -> str | None:
        """Return the declared type of a job's accelerators; empty for any, None for an unknown one."""
        table, types = self.table.gpu_types, {*self.declaration.accelerators.values()} - {""}
        name = table.get(job.gpu_type, job.gpu_type)
        if name in types:
            return name
        short = [type_ for type_ in types if type_.endswith(f"-{name.lower()}")]
        if len(short) == 1:
            return short[0]
        other = table.get(ANY, "any" if not self.own or not job.gpu_type else "")
        return "" if "any" in (name, other) else other or None

    def _work(self, number: int, job: TraceJob) -> Work:
        queue = self._queue(job) or self._every()[0]
        accelerator = self._accelerator(job) or ""
        priority = self.declaration.priorities.get(job.priority, 0)
        types = self.declaration.accelerators
        pools = [
            name
            for name in queue.pools
            if not job.gpus or (types[name] == accelerator if accelerator else types[name])
        ]
        possible: list[Work] = []
        for pool in pools or queue.pools or self.declaration.capacity:
            pods, shape = self._shape(job, self.declaration.capacity[pool])
            why_not = self._why_not(job, queue, pools, pods, shape)
            possible.append(Work(number, job, queue, pods, shape, priority, accelerator, why_not))
        chosen = next((work for work in possible if not work.why_not), possible[0])
        if not job.admitted:
            return chosen
        flavor = job.flavor if job.flavor in self.declaration.flavors else ""
        return replace(chosen, flavor=flavor, why_not="")

    def _shape(self, job: TraceJob, node: Shape) -> tuple[int, Shape]:
        """Return the number of pods and their requests on nodes of a pool."""
        pods = job.pods or _pods(job, node)
        gpus = job.gpus if job.pods else math.ceil(job.gpus / pods)
        total = 1 if job.pods else pods
        part = min(gpus, node.gpus)
        if job.cpu:
            cpu = _rounded(job.cpu * 1000 / total, node.cpu)
        else:
            cpu = node.cpu * part // node.gpus if part else 1000
        if job.memory:
            memory = _rounded(job.memory / _MIB / total, node.memory)
        elif part:
            memory = node.memory * part // node.gpus
        else:
            memory = node.memory * min(cpu, node.cpu) // max(1, node.cpu)
        return pods, Shape(cpu, memory, gpus, node.resource if gpus else "")

    def _why_not(
        self, job: TraceJob, queue: LocalQueue, pools: Iterable[str], pods: int, shape: Shape
    ) -> str:
        """Return why a job fits none of the pools, even if they are empty."""
        names = list(pools)
        if not names:
            return f"{queue} lacks its accelerators"
        most_pods, lives = 0, False
        for name in names:
            node, pool = self.declaration.capacity[name], self.declaration.pool(name)
            pairs = (shape.cpu, node.cpu), (shape.memory, node.memory), (shape.gpus, node.gpus)
            most_pods = max(most_pods, min(whole // part for part, whole in pairs if part) * pool.maximum)
            longest = min(job.seconds, job.checkpoint or job.seconds)
            lives = lives or not self.ends or longest <= (pool.max_run_seconds or longest)
        if self._is_queued_for_others(queue, names, shape):
            work = "work in queues" if queue.is_pool else "pods with its accelerators"
            return f"nodes of pool {names[0]} are provisioned for {work} alone"
        if not most_pods:
            return f"a pod is larger than every node of {queue}"
        if most_pods < pods:
            return f"its pods exceed the most nodes of {'' if queue.is_pool else 'every pool of '}{queue}"
        if not lives:
            return f"it runs longer than nodes of {queue} live, without a checkpoint"
        return ""

    def _is_queued_for_others(self, queue: LocalQueue, pools: Iterable[str], shape: Shape) -> bool:
        """Return whether all nodes are provisioned by requests that a job does not create."""
        if queue.is_pool:
            return all(self.declaration.pool(name).capacity == "queued" for name in pools)
        return not shape.gpus and all(map(self._is_for_gpus, pools))


def requests(pods: int | None, gpus: int, cpu: float | None, memory: float | None) -> str:
    """Format requests, without those that a trace lacks: `2 pods, each 8 GPUs, 93 CPU, 640 GiB`; without a
    number of pods, they are totals."""
    amounts = [
        *([several(gpus, "GPU")] if gpus else ()),
        *([f"{cpu:g} CPU"] if cpu else ()),
        *([f"{memory / _GIB:,.3g} GiB" if memory >= _GIB else f"{memory / _MIB:.0f} MiB"] if memory else ()),
    ]
    each = ", ".join(amounts) or "no requests"
    return each if pods is None else f"{several(pods, 'pod')}, {'each ' if pods > 1 else ''}{each}"


def _pods(job: TraceJob, node: Shape) -> int:
    """Return the least number of equal pods that fit nodes of a pool."""
    needs = (
        (job.gpus, node.gpus),
        (_least((job.cpu or 0) * 1000), node.cpu),
        (_least((job.memory or 0) / _MIB), node.memory),
    )
    return max(1, *(math.ceil(need / whole) for need, whole in needs if whole))


def _least(amount: float) -> int:
    """Round an amount up, but for the error of a floating-point product."""
    return math.ceil(round(amount, 3))


def _rounded(amount: float, whole: int) -> int:
    """Round a request up while as many pods fit a node: jobs with equal requests are scheduled together."""
    least = _least(amount)
    rounded = -(-least // _SMALLEST) * _SMALLEST
    return min(rounded, whole // (whole // least)) if least <= whole else rounded


def check_table(mappers: Iterable[Mapper]) -> None:
    """Check the table of some declarations.

    Raises:
        TraceError: it names queues or accelerators that are not declared.
    """
    faults = list(
        dict.fromkeys(
            f"{mapper.declaration.name}: {fault}" for mapper in mappers for fault in mapper.table_faults()
        )
    )
    if faults:
        raise TraceError("\n".join(faults))
