"""Model of a cloud's delays, stock and reclaims, with defaults that a file changes.

No cloud publishes startup times or stock. Google publishes the preemption rate of a machine type in a zone
(advice.capacityHistory; Compute Engine docs, view-spot-preemption-price, 2026), which a file can have.
"""

import bisect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, Field, ValidationError, model_validator

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import RECLAIMABLE, Autoscaling, NodePool
from ebbtide.declaration.model.shape.findings import shape_faults
from ebbtide.declaration.project import yaml_file
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, parse_json, read_text
from ebbtide_rehearsal import RehearsalError
from kueue_replay.cluster import Part

_HOUR: Final = 3600.0
_DAY_HOURS: Final = 24
_NODES: Final = NodeSettings()
_AUTOSCALING: Final = Autoscaling()

Seconds = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class CloudModelError(RehearsalError):
    """A model of a cloud is invalid; the message has every fault."""

    rule = "cloud-model"


class Process(Part):
    """Events over time: one of `every`, `perHour` and `file`; without any of them, none happen."""

    every: Positive | None = None
    """Seconds from the start of a node, or from the end of the last stock-out, to the event."""
    per_hour: Annotated[float, Field(ge=0)] | None = None
    """Mean number of events per hour, exponentially distributed."""
    by_hour: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=24, max_length=24)] = (
        1.0,
    ) * _DAY_HOURS
    """Factors of `perHour`, by the hour of day of the trace."""
    file: str | None = None
    """JSON file of spot availability, beside the model's file: `metadata.gap_seconds` and `data`, in which 1
    means not available; it repeats."""
    lasts: Positive = 1800.0
    """Seconds that a stock-out lasts; a file has its own."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(value is not None for value in (self.every, self.per_hour, self.file)) > 1:
            raise ValueError("every, perHour and file exclude each other. Write one of them.")
        return self


class Startup(Part):
    """Time from the request for a node until it is ready."""

    seconds: Seconds = _NODES.startup_seconds
    """Median, seconds. The rehearsal's default, an assumption."""
    spread: Annotated[float, Field(ge=0, le=2)] = 0.25
    """Standard deviation of the logarithm of all startup times, an assumption: at 0.25, two of three times
    are within a factor 1.3 of the median."""
    driver_seconds: Seconds = _NODES.driver_seconds
    """Seconds until the accelerators of a ready node are allocatable. The rehearsal's default."""
    machines: dict[str, Seconds] = Field(default_factory=dict[str, float])
    """Median by machine type, or a pattern such as `a2-*`."""


class QueuedWait(Part):
    """Time that a request for queued nodes waits for capacity."""

    seconds: Seconds = _NODES.dws_wait_seconds
    """Median, seconds. The rehearsal's default, an assumption: GKE documents that it may be days."""
    spread: Annotated[float, Field(ge=0, le=3)] = 0.5
    """Standard deviation of its logarithm, an assumption."""


def _default_reclaims() -> dict[str, Process]:
    return {kind: Process(per_hour=0.0044) for kind in RECLAIMABLE}


class CloudModel(Part):
    """A cloud's delays, stock and reclaims. Keys of `stock` and `reclaims` are patterns of pool names,
    machine types or capacity types; the first that matches applies."""

    startup: Startup = Startup()
    """Startup of nodes."""
    scale_down_seconds: Seconds = _AUTOSCALING.idle_seconds
    """Time that a node is unneeded before its removal (`scale-down-unneeded-time`)."""
    scale_down_delay_seconds: Seconds = _AUTOSCALING.delay_after_add_seconds
    """Time without removals after a scale-up (`scale-down-delay-after-add`)."""
    queued_wait: QueuedWait = QueuedWait()
    """Wait for queued nodes."""
    stock: dict[str, Process] = Field(default_factory=dict[str, Process])
    """Stock-outs. None by default."""
    reclaims: dict[str, Process] = Field(default_factory=_default_reclaims)
    """Reclaims of spot and preemptible nodes. By default 0.0044 an hour, 10 % of nodes in a day, an
    assumption."""
    failures_per_hour: Annotated[float, Field(ge=0)] = 0.0
    """Mean number of failures of a running job per hour, after each of which it starts again."""

    def settings(self) -> NodeSettings:
        """Return the durations of node pools' operations."""
        return replace(
            _NODES,
            startup_seconds=self.startup.seconds,
            driver_seconds=self.startup.driver_seconds,
            dws_wait_seconds=self.queued_wait.seconds,
        )

    def autoscaling(self) -> Autoscaling:
        """Return the autoscaler's settings."""
        return replace(
            _AUTOSCALING,
            idle_seconds=self.scale_down_seconds,
            delay_after_add_seconds=self.scale_down_delay_seconds,
        )


def read_cloud_model(path: Path | None) -> "tuple[CloudModel, Recorded]":
    """Read a file with changes of the default model, if there is one, and the files of availability that it
    names.

    Raises:
        CloudModelError: a file is invalid; the message has every fault.
    """
    if path is None:
        return CloudModel(), {}
    try:
        written = yaml_file.read(path).value
    except (yaml_file.YamlFileError, OSError) as error:
        raise CloudModelError(f"{path}: {error}") from error
    try:
        model = CloudModel.model_validate(written if written is not None else {})
    except ValidationError as error:
        wrong = shape_faults(CloudModel, error, written, "The model")
        raise CloudModelError("\n".join(f"{path}: {fault}" for fault in wrong)) from error
    names = {process.file for process in (*model.stock.values(), *model.reclaims.values()) if process.file}
    faults: list[str] = []
    recorded: dict[str, Availability] = {}
    for name in sorted(names):
        try:
            recorded[name] = _availability(path.parent / name)
        except (UserFileError, ValueError) as error:
            faults.append(f"{path.parent / name}: {error}")
    if faults:
        raise CloudModelError("\n".join(faults))
    return model, recorded


@dataclass(frozen=True, slots=True)
class Availability:
    """Recorded stock of a spot machine; it repeats.

    Attributes:
        gap: seconds of each entry.
        out: whether the machine was not available.
    """

    gap: float
    out: tuple[bool, ...]

    def next(self, at: float, *, out: bool) -> float:
        """Return the next time, from `at`, at which the machine is or is not available."""
        first = int(at // self.gap)
        for step in range(len(self.out) + 1):
            if self.out[(first + step) % len(self.out)] is out:
                return max(at, (first + step) * self.gap)
        return math.inf


Recorded: TypeAlias = Mapping[str, Availability]
"""Recorded stock, by file name."""


class _Metadata(BaseModel):
    """Metadata of an availability file."""

    gap_seconds: float = Field(gt=0)


class _AvailabilityFile(BaseModel):
    """A file of availability."""

    metadata: _Metadata
    data: list[Literal[0, 1]] = Field(min_length=1)


def _availability(path: Path) -> Availability:
    try:
        file = _AvailabilityFile.model_validate(parse_json(read_text(path, LARGEST_GENERATED)))
    except ValueError:
        raise ValueError(
            'Write {"metadata": {"gap_seconds": 600}, "data": [0, 0, 1]}; 1 means not available.'
        ) from None
    return Availability(file.metadata.gap_seconds, tuple(entry == 1 for entry in file.data))


class Cloud:
    """A cloud in one replay: draws of its model, the same for the same seed."""

    def __init__(
        self,
        model: CloudModel,
        recorded: Recorded,
        seed: int,
        midnight: float,
        existing: Mapping[str, int] | None = None,
        admitted: Collection[str] = (),
    ) -> None:
        """Draw from a model.

        Args:
            recorded: recorded stock of the model's files.
            midnight: seconds from midnight to the start.
            existing: number of nodes by pool that are ready at the start; they are requested first.
            admitted: jobs that have quota at the start, and queued nodes.
        """
        self.model = model
        self._existing, self._admitted = existing or {}, admitted
        self._recorded, self._seed, self._midnight = recorded, seed, midnight
        self._outages: dict[str, _Outages] = {}

    def startup_seconds(self, pool: NodePool, node: str) -> float:
        """Return the time from the request for a node until its pods can start."""
        if self._existing and int(node.rpartition("-")[2]) <= self._existing.get(pool.name, 0):
            return 0.0
        startup = self.model.startup
        median = next(
            (seconds for pattern, seconds in startup.machines.items() if fnmatchcase(pool.machine, pattern)),
            startup.seconds,
        )
        drawn = median * self._random("startup", node).lognormvariate(0, startup.spread)
        return drawn + (startup.driver_seconds if pool.accelerator else 0)

    def queued_seconds(self, request: str) -> float:
        """Return the time that a request for queued nodes waits for capacity."""
        if request in self._admitted:
            return 0.0
        wait = self.model.queued_wait
        return wait.seconds * self._random("queued", request).lognormvariate(0, wait.spread)

    def reclaim_at(self, pool: NodePool, node: str, since: float) -> float:
        """Return the time at which a node is reclaimed; infinite for never."""
        process = _matching(self.model.reclaims, pool) if pool.capacity in RECLAIMABLE else None
        return math.inf if process is None else self._next(process, since, self._random("reclaim", node))

    def failure_at(self, run: str, since: float) -> float:
        """Return the time at which a running job fails; infinite for never."""
        rate = self.model.failures_per_hour
        return since + self._random("failure", run).expovariate(rate / _HOUR) if rate else math.inf

    def stock_from(self, pool: NodePool, at: float) -> float:
        """Return the time from which a pool gets nodes: `at` unless there is a stock-out, or its reservation
        has not begun; infinite after the end of that."""
        if pool.reserved:
            begin, end = pool.reserved
            return max(begin, at) if at < end else math.inf
        process = _matching(self.model.stock, pool)
        if process is None:
            return at
        if process.file:
            return self._recorded[process.file].next(at, out=False)
        if pool.name not in self._outages:
            draw = partial(self._next, process, random=self._random("stock", pool.name))
            self._outages[pool.name] = _Outages(draw, process.lasts)
        return self._outages[pool.name].over_at(at)

    def _next(self, process: Process, since: float, random: Random) -> float:
        if process.file:
            return self._recorded[process.file].next(since, out=True)
        if process.every:
            return since + process.every
        most = (process.per_hour or 0.0) * max(process.by_hour) / _HOUR
        if not most:
            return math.inf
        at = since
        while True:  # thinning of a process with the highest rate
            at += random.expovariate(most)
            hour = int((self._midnight + at) // _HOUR) % _DAY_HOURS
            if random.random() * max(process.by_hour) <= process.by_hour[hour]:
                return at

    def _random(self, *names: str) -> Random:
        """Return the generator of a node or request, which does not depend on other draws."""
        return Random("/".join((str(self._seed), *names)))  # noqa: S311 - a simulation


class _Outages:
    """Stock-outs of a pool, drawn in the order of time."""

    def __init__(self, draw: Callable[[float], float], lasts: float) -> None:
        self._draw, self._lasts = draw, lasts
        self._starts: list[float] = [draw(0.0)]

    def over_at(self, at: float) -> float:
        while self._starts[-1] <= at:
            self._starts.append(self._draw(self._starts[-1] + self._lasts))
        number = bisect.bisect_right(self._starts, at) - 1
        return max(at, self._starts[number] + self._lasts) if number >= 0 else at


def _matching(processes: Mapping[str, Process], pool: NodePool) -> Process | None:
    names: Sequence[str] = (pool.name, pool.machine, pool.capacity)
    return next(
        (
            process
            for pattern, process in processes.items()
            if any(fnmatchcase(name, pattern) for name in names)
        ),
        None,
    )


def assumptions(model: CloudModel, factor: float) -> dict[str, CloudModel]:
    """Return the model with one assumption multiplied, by the assumption's name in words."""

    def times(process: Process) -> Process:
        every = process.every and process.every / factor
        rate = None if process.per_hour is None else process.per_hour * factor
        return process.model_copy(update={"every": every, "per_hour": rate})

    startup, queued = model.startup, model.queued_wait
    changes: dict[str, dict[str, Any]] = {
        "startup of nodes": {
            "startup": startup.model_copy(
                update={
                    "seconds": startup.seconds * factor,
                    "driver_seconds": startup.driver_seconds * factor,
                    "machines": {name: seconds * factor for name, seconds in startup.machines.items()},
                }
            )
        },
        "delay of scale-down": {"scale_down_seconds": model.scale_down_seconds * factor},
        "rate of reclaims": {"reclaims": {name: times(process) for name, process in model.reclaims.items()}},
        "rate of stock-outs": {"stock": {name: times(process) for name, process in model.stock.items()}},
        "wait for queued nodes": {
            "queued_wait": queued.model_copy(update={"seconds": queued.seconds * factor})
        },
    }
    return {name: model.model_copy(update=change) for name, change in changes.items()}
