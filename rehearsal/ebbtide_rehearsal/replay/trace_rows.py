"""Rows of traces as jobs: a reader for each format.

Formats: Standard Workload Format 2.2 (Parallel Workloads Archive, swf.html, read 2026-11); Philly
(siasosp23/artifacts@aaf7a0de, sia-simulator/traces/philly.csv); PAI (umassos/GAIA@62a5efcc,
src/cluster_traces/pai-100k.csv); openb (alibaba/clusterdata@50a91c7c, cluster-trace-gpu-v2023).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from ebbtide.values import durations, quantities

Format: TypeAlias = Literal["csv", "swf", "philly", "pai", "openb"]

_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]*)?|\.[0-9]+")
_WHOLE: Final = re.compile(r"[0-9]{1,9}")
_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace.

    Attributes:
        line: its line in the file.
        name: its name; empty for none.
        submit: seconds from the first job's submission.
        seconds: its duration.
        pods: number of its pods; None if CPU, memory and GPUs are totals, to be split by the pools' machines.
        cpu: CPUs of each pod; None for the share of its node.
        memory: bytes of each pod; None for the share of its node.
        gpus: accelerators of each pod.
        gpu_type: type of the accelerators as the trace names it; empty for any.
        queue: queue as the trace names it; empty for none.
        priority: name of its WorkloadPriorityClass; empty for none.
        checkpoint: seconds between checkpoints; None if an eviction loses everything.
        deadline: seconds from the first job's submission; None for none.
        user: its user; empty for none.
        keep_node: whether no scale-down ends it.
    """

    line: int
    name: str
    submit: float
    seconds: float
    pods: int | None = None
    cpu: float | None = None
    memory: float | None = None
    gpus: int = 0
    gpu_type: str = ""
    queue: str = ""
    priority: str = ""
    checkpoint: float | None = None
    deadline: float | None = None
    user: str = ""
    keep_node: bool = False


Row: TypeAlias = Mapping[str, str]
Reader: TypeAlias = Callable[[int, Row], "TraceJob | str"]
"""Reads a row: a job, or why it has none to replay. Faults are raised as `RowError`."""


class RowError(Exception):
    """The faults of a row."""

    def __init__(self, faults: Iterable[str]) -> None:
        super().__init__()
        self.faults = list(faults)


def _seconds(row: Row, column: str, faults: list[str]) -> float:
    """Parse a duration: seconds, or a number with its unit."""
    text = row[column]
    if _NUMBER.fullmatch(text):
        return float(text)
    try:
        length = durations.parse(text).total_seconds()
    except ValueError:
        length = -1.0
    if length < 0:
        faults.append(
            f"{column} is {text or 'empty'}. Write seconds that are not negative, or a duration such as 90m."
        )
    return length


def _time(row: Row, column: str, faults: list[str]) -> float:
    """Parse a time: seconds from any start, or a date and time, in UTC unless it has an offset."""
    text = row[column]
    if _NUMBER.fullmatch(text):
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        faults.append(
            f"{column} is {text or 'empty'}. Write seconds that are not negative, or a time such as "
            "2026-11-02T08:00:00Z."
        )
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _count(row: Row, column: str, least: int, faults: list[str]) -> int:
    text = row[column]
    if not _WHOLE.fullmatch(text) or int(text) < least:
        faults.append(f"{column} is {text or 'empty'}. Write a whole number from {least} on.")
        return least
    return int(text)


def _quantity(row: Row, column: str, example: str, faults: list[str]) -> float | None:
    if not row[column]:
        return None
    try:
        amount = float(quantities.parse(row[column]))
    except ValueError:
        amount = 0.0
    if not 0 < amount < math.inf:
        faults.append(f"{column} is {row[column]}. Write a quantity above 0, such as {example}.")
    return amount


def _number(row: Row, column: str, faults: list[str]) -> float:
    if _NUMBER.fullmatch(row[column]):
        return float(row[column])
    faults.append(f"{column} is {row[column] or 'empty'}. Write a number that is not negative.")
    return 0.0


def _own(line: int, row: Row) -> TraceJob:
    faults: list[str] = []
    submit, seconds = _time(row, "submit", faults), _seconds(row, "duration", faults)
    job = TraceJob(
        line,
        row["name"],
        submit,
        seconds,
        pods=_count(row, "pods", 1, faults) if row["pods"] else None,
        cpu=_quantity(row, "cpu", "4 or 500m", faults),
        memory=_quantity(row, "memory", "16Gi", faults),
        gpus=_count(row, "gpus", 0, faults) if row["gpus"] else 0,
        gpu_type=row["gpu_type"],
        queue=row["queue"],
        priority=row["priority"],
        checkpoint=_seconds(row, "checkpoint", faults) if row["checkpoint"] else None,
        deadline=_time(row, "deadline", faults) if row["deadline"] else None,
        user=row["user"],
        keep_node=row["keep_node"] == "true",
    )
    if row["keep_node"] not in ("", "true", "false"):
        faults.append(f"keep_node is {row['keep_node']}. Write true, false, or leave it empty.")
    if job.gpu_type and not job.gpus:
        faults.append("gpu_type needs gpus. Write their number, or leave gpu_type empty.")
    if job.checkpoint == 0:
        faults.append("checkpoint is 0. Write the time between two checkpoints, or leave it empty.")
    if job.deadline is not None and job.deadline < submit:
        faults.append("deadline is before submit. Write a later one, or leave it empty.")
    return _checked(job, faults)


def _swf(line: int, row: Row) -> TraceJob | str:
    def known(*fields: int) -> str:
        """Return the first of the fields that is not -1, which means unknown."""
        return next((row[str(field)] for field in fields if not row[str(field)].startswith("-1")), "")

    if not known(4):
        return "cancelled, or without a run time in the log: not replayed."
    if not known(8, 5):
        return "without a number of processors: not replayed."
    cells = {"submit": row["2"], "run time": known(4), "processors": known(8, 5), "memory": known(10, 7)}
    faults: list[str] = []
    submit, seconds = _number(cells, "submit", faults), _number(cells, "run time", faults)
    processors = _count(cells, "processors", 1, faults)
    kilobytes = _number(cells, "memory", faults) if cells["memory"] else 0.0
    job = TraceJob(
        line,
        row["1"],
        submit,
        seconds,
        cpu=float(processors),
        memory=kilobytes * 1024 * processors or None,
        queue=known(15),
    )
    return _checked(job, faults)


def _philly(line: int, row: Row) -> TraceJob:
    faults: list[str] = []
    job = TraceJob(
        line,
        "",
        _time(row, "timestamp", faults),
        _seconds(row, "duration", faults),
        gpus=_count(row, "num_gpus", 1, faults),
        queue=row["cluster"],
    )
    return _checked(job, faults)


def _pai(line: int, row: Row) -> TraceJob:
    faults: list[str] = []
    job = TraceJob(
        line,
        "",
        _number(row, "arrival_time", faults) * _HOUR,
        _number(row, "length", faults) * _HOUR,
        cpu=float(_count(row, "cpus", 1, faults)),
    )
    return _checked(job, faults)


def _openb(line: int, row: Row) -> TraceJob | str:
    if not row["scheduled_time"]:
        return "never scheduled, and so without a duration: not replayed."
    faults: list[str] = []
    created, scheduled, deleted = (
        _number(row, f"{name}_time", faults) for name in ("creation", "scheduled", "deletion")
    )
    job = TraceJob(
        line,
        row["name"],
        created,
        max(0.0, deleted - scheduled),
        pods=1,
        cpu=_number(row, "cpu_milli", faults) / 1000 or None,
        memory=_number(row, "memory_mib", faults) * (1 << 20) or None,
        gpus=_count(row, "num_gpu", 0, faults),
        gpu_type=row["gpu_spec"],
        queue=row["qos"],
    )
    return _checked(job, faults)


def _checked(job: TraceJob, faults: list[str]) -> TraceJob:
    if faults:
        raise RowError(faults)
    return job


READERS: Final[Mapping[Format, Reader]] = {
    "csv": _own,
    "swf": _swf,
    "philly": _philly,
    "pai": _pai,
    "openb": _openb,
}
NOTES: Final[Mapping[Format, str]] = {
    "philly": "Philly has GPUs in total, without type, CPU or memory; its lines were sorted by time.",
    "pai": "PAI has CPUs alone, in total; its hours became seconds.",
    "openb": "A part of a GPU in openb counts as a whole one.",
    "swf": "A processor of SWF is a CPU.",
}
