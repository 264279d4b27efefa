"""Traces of jobs, read from files: a reader for the rows of each format; faults are reported together.

Formats: Standard Workload Format 2.2 (Parallel Workloads Archive, swf.html, read 2026-11); Philly
(siasosp23/artifacts@aaf7a0de, sia-simulator/traces/philly.csv); PAI (umassos/GAIA@62a5efcc,
src/cluster_traces/pai-100k.csv); openb (alibaba/clusterdata@50a91c7c, cluster-trace-gpu-v2023).
"""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field

from ebbtide.errors import EbbtideError
from ebbtide.text import printable, several
from ebbtide.values import durations, quantities
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, read_text

Format: TypeAlias = Literal["csv", "swf", "philly", "pai", "openb", "jobs"]
"""Formats of files, and `jobs` for those of a request."""

REQUIRED: Final = ("submit", "duration")
OPTIONAL: Final = (
    "name",
    "user",
    "pods",
    "cpu",
    "memory",
    "gpus",
    "gpu_type",
    "queue",
    "priority",
    "checkpoint",
    "deadline",
    "keep_node",
)

_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]*)?|\.[0-9]+")
_WHOLE: Final = re.compile(r"[0-9]{1,9}")
_HOUR: Final = 3600
MOST_JOBS: Final = 1_000_000
"""Maximum number of lines of a trace."""

_PART: Final = "Write a part of it to a file of its own, such as a week."
_MOST_FAULTS: Final = 20
_DAY: Final = 86400
_DATED: Final = 1e9
"""Seconds since 1970 in 2001: earlier times are seconds from any start."""
_YEARS: Final = 10
_LONGEST: Final = _YEARS * 365 * _DAY
"""Maximum seconds of a job, and from the first submission to the last: longer ones are milliseconds."""

_HEADS: Final[Mapping[tuple[str, ...], Format]] = {
    ("timestamp", "duration", "num_gpus", "gpu_time", "cluster"): "philly",
    ("arrival_time", "length", "cpus"): "pai",
    (
        "name",
        "cpu_milli",
        "memory_mib",
        "num_gpu",
        "gpu_milli",
        "gpu_spec",
        "qos",
        "pod_phase",
        "creation_time",
        "deletion_time",
        "scheduled_time",
    ): "openb",
}
_SWF_FIELDS: Final = 18
_BACKWARDS: Final = "submit is earlier than in a line above. Sort the lines by submit."
Row: TypeAlias = Mapping[str, str]
Reader: TypeAlias = Callable[[int, Row], "TraceJob | str"]
"""Reads a row: a job, or why it has none to replay. Faults are raised as `RowError`."""
NOTES: Final[Mapping[Format, str]] = {
    "philly": "Philly has GPUs in total, without type, CPU or memory; its lines were sorted by time.",
    "pai": "PAI has CPUs alone, in total; its hours became seconds.",
    "openb": "A part of a GPU in openb counts as a whole one.",
    "swf": "A processor of SWF is a CPU.",
}


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace.

    Attributes:
        line: its line in the file.
        submit: seconds from the first job's submission.
        pods: number of its pods; None if CPU, memory and GPUs are totals, to be split by the pools' machines.
        cpu: CPUs of each pod; None for the share of its node.
        memory: bytes of each pod; None for the share of its node.
        gpus: accelerators of each pod.
        gpu_type: type of the accelerators as the trace names it; empty for any.
        queue: queue as the trace names it; empty for none.
        priority: name of its WorkloadPriorityClass; empty for none.
        checkpoint: seconds between checkpoints; None if an eviction loses everything.
        deadline: seconds from the first job's submission; None for none.
        keep_node: whether no scale-down ends it.
        admitted: whether it has quota at the start.
        started: whether its nodes exist at the start.
        flavor: ResourceFlavor of an admitted job; empty for any.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    line: int
    name: str
    submit: Annotated[float, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]
    pods: Annotated[int, Field(ge=1)] | None = None
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
    admitted: bool = False
    started: bool = False
    flavor: str = ""


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


class TraceError(EbbtideError):
    """A trace is invalid; the message has its faults with their lines."""

    rule = "trace"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace.

    Attributes:
        jobs: its jobs, by time of submission.
        first: time of the first submission as the trace has it, seconds from any start, or since 1970.
        notes: sentences about what was read how.
    """

    file: str
    format: Format
    jobs: Sequence[TraceJob]
    first: float
    notes: tuple[str, ...] = ()

    @property
    def midnight(self) -> float:
        """Seconds from midnight to the first submission."""
        return self.first % _DAY

    @property
    def start(self) -> datetime | None:
        """Time of the first submission; None for a trace without dates."""
        return datetime.fromtimestamp(self.first, UTC) if self.first >= _DATED else None


Check: TypeAlias = Callable[[TraceJob], Iterable[str]]
"""Yields the faults of a job that a declaration has, such as an unknown queue."""


def read_trace(path: Path, check: Check = lambda _: ()) -> Trace:
    """Read a trace; its first line determines the format.

    Args:
        check: further faults of a job of a trace that is written for a declaration.

    Raises:
        TraceError: the file is invalid; the message has the first faults, with their lines, and their number.
    """
    try:
        text = read_text(path, LARGEST_GENERATED)
    except UserFileError as error:
        is_large = path.is_file() and path.stat().st_size > LARGEST_GENERATED
        raise TraceError(f"{path}: {error}{f' {_PART}' if is_large else ''}") from error
    lines = text.removesuffix("\n").split("\n")
    if len(lines) > MOST_JOBS + 1:
        raise TraceError(
            f"{path}:{MOST_JOBS + 2}: The trace has {len(lines) - 1:,} lines, and {MOST_JOBS:,} jobs are the "
            f"most that is replayed. {_PART}"
        )
    head = tuple(cell.strip() for cell in lines[0].split(","))
    if lines[0].startswith(";") or path.suffix == ".swf":
        return _Reading(path, "swf", check).read(_swf_rows(lines))
    return _Reading(path, _HEADS.get(head, "csv"), check).read(_csv_rows(path, lines, head))


@dataclass(slots=True)
class _Faults:
    """Faults of a file: the first ones with their text, and the number of all."""

    path: Path
    texts: list[str]
    count: int = 0

    def add(self, line: int, faults: Iterable[str]) -> None:
        for fault in faults:
            self.count += 1
            if len(self.texts) < _MOST_FAULTS:
                self.texts.append(f"{self.path}:{line}: {fault}")

    def raise_if_any(self) -> None:
        if self.count > len(self.texts):
            self.texts.append(f"{self.path}: {several(self.count - len(self.texts), 'more fault')}.")
        if self.texts:
            raise TraceError("\n".join(self.texts))


class _Reading:
    """Reading of one trace."""

    def __init__(self, path: Path, format_: Format, check: Check) -> None:
        self._path, self._check = path, check
        self._format: Format = format_
        self._row = READERS[self._format]

    def read(self, rows: Iterable[tuple[int, Row | str]]) -> Trace:
        """Read the rows: cells by column, or the fault of a line."""
        faults, jobs, skipped = _Faults(self._path, []), list[TraceJob](), dict[str, int]()
        sorts = self._format in ("philly", "pai", "openb")
        latest = -math.inf
        for line, row in rows:
            if isinstance(row, str):
                faults.add(line, [row])
                continue
            try:
                job = self._row(line, row)
            except RowError as error:
                faults.add(line, error.faults)
                continue
            if isinstance(job, str):
                skipped[job] = skipped.get(job, 0) + 1
                continue
            if self._format == "csv":
                faults.add(line, self._check(job))
            if job.submit < latest and not sorts:
                faults.add(line, [_BACKWARDS])
            latest = max(latest, job.submit)
            jobs.append(job)
        if not (jobs or faults.count):
            faults.add(1, ["The trace has no job. Write a line for each job below the line of columns."])
        first = min((job.submit for job in jobs), default=0.0)
        for line, fault in _too_long(jobs, first):
            faults.add(line, [fault])
        faults.raise_if_any()
        notes = [f"{several(count, 'job')} {why}" for why, count in skipped.items()]
        if self._format in NOTES:
            notes.append(NOTES[self._format])
        ordered = sorted(jobs, key=lambda job: (job.submit, job.line)) if sorts else jobs
        return Trace(
            str(self._path),
            self._format,
            [_from(first, job) for job in ordered],
            first,
            tuple(notes),
        )


def _too_long(jobs: Iterable[TraceJob], first: float) -> Iterator[tuple[int, str]]:
    for job in jobs:
        for seconds, start in ((job.submit - first, "is submitted after"), (job.seconds, "takes")):
            if seconds > _LONGEST:
                years = f"{seconds / (365 * _DAY):,.0f} years"
                yield (
                    job.line,
                    f"The job {start} {years}, and {_YEARS} are the most that is replayed. Write seconds.",
                )


def _from(first: float, job: TraceJob) -> TraceJob:
    deadline = None if job.deadline is None else job.deadline - first
    return replace(job, submit=job.submit - first, deadline=deadline)


def _csv_rows(path: Path, lines: Sequence[str], head: tuple[str, ...]) -> Iterator[tuple[int, Row | str]]:
    reader = csv.reader(lines, strict=True)
    next(reader, None)
    if head not in _HEADS:
        columns = set(head)
        unknown = sorted(columns - {*REQUIRED, *OPTIONAL, ""})
        missing = [name for name in REQUIRED if name not in columns]
        repeated = sorted({name for name in columns if head.count(name) > 1})
        named = {"missing": missing, "unknown": unknown, "repeated": repeated}
        wrong = [
            f"{adjective} {'column' if len(names) == 1 else 'columns'} {', '.join(names)}"
            for adjective, names in named.items()
            if names
        ]
        if wrong:
            columns_text = ",".join((*REQUIRED, *OPTIONAL))
            raise TraceError(
                f"{path}:1: {printable('; '.join(wrong).capitalize(), one_line=True)}. Write {columns_text}; "
                "all but the first two may be omitted."
            )
    optional = dict.fromkeys(OPTIONAL, "")
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield reader.line_num, f"The line is not CSV: {error}."
            continue
        if not any(cells):
            continue
        if len(cells) != len(head):
            counts = f"The line has {several(len(cells), 'cell')}, and the header has {len(head)}."
            yield reader.line_num, f"{counts} Write one for each column."
        elif any(not cell.isprintable() for cell in cells):
            yield reader.line_num, "A cell has a control character. Remove it."
        else:
            yield reader.line_num, optional | dict(zip(head, map(str.strip, cells), strict=True))


def _swf_rows(lines: Sequence[str]) -> Iterator[tuple[int, Row | str]]:
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or line.startswith(";"):
            continue
        if len(fields) != _SWF_FIELDS:
            yield number, f"The line has {several(len(fields), 'field')}. Write the {_SWF_FIELDS} of SWF."
        else:
            yield number, {str(position): field for position, field in enumerate(fields, start=1)}
