"""Traces of jobs, read from files; faults are reported together with their lines."""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from ebbtide.errors import EbbtideError
from ebbtide.operations.traces.rows import OPTIONAL, REQUIRED
from ebbtide.text import printable, several
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, read_text
from ebbtide_rehearsal.replay.trace_rows import NOTES, READERS, Format, Row, RowError, TraceJob

MOST_JOBS: Final = 1_000_000
"""Maximum number of lines of a trace."""

_PART: Final = "Write a part of it to a file of its own, such as a week."
_MOST_FAULTS: Final = 20
_DAY: Final = 86400
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


class TraceError(EbbtideError):
    """A trace is invalid; the message has its faults with their lines."""

    rule = "trace"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace.

    Attributes:
        file: its file.
        format: its format.
        jobs: its jobs, by time of submission.
        midnight: seconds from midnight to the first submission.
        notes: sentences about what was read how.
    """

    file: str
    format: Format
    jobs: Sequence[TraceJob]
    midnight: float
    notes: tuple[str, ...] = ()


Check: TypeAlias = Callable[[TraceJob], Iterable[str]]
"""Yields the faults of a job that a declaration has, such as an unknown queue."""


def read_trace(path: Path, check: Check = lambda _: ()) -> Trace:
    """Read a trace; its first line determines the format.

    Args:
        path: the file.
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
            first % _DAY,
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


_BACKWARDS: Final = "submit is earlier than in a line above. Sort the lines by submit."


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
