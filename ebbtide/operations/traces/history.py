"""The jobs of a cluster as a trace for `ebbtide replay`: what exists, and the record of what has ended."""

import csv
import hashlib
import hmac
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.errors import EbbtideError
from ebbtide.operations.ledger import Line, by_job, find_record, moment
from ebbtide.operations.traces.existing import ExistingWork, read_existing
from ebbtide.placement import Profile
from ebbtide.text import several
from ebbtide.values import quantities

_MIB: Final = 1 << 20
_ROUNDED: Final = 1.0
"""Times of the API are whole seconds."""
_REMARKS: Final = {
    "waiting": ("waits", "wait", "without a run time yet: not in the trace."),
    "unknown": ("has", "have", "no requests in the cost record of an earlier version: not in it."),
    "running": ("runs", "run", "still: the duration is the time until now."),
    "disrupted": ("was", "were", "disrupted: the duration includes lost attempts."),
    "mixed": ("has", "have", "pods of different sizes: each counts as the largest."),
    "unqueued": ("ran", "ran", "in no queue, on an unknown pool: name one with --map of `ebbtide replay`."),
}
"""Remarks about jobs, with the verb for one and for several."""
_NO_RECORD: Final = (
    "Deleted jobs are missing: the cluster has no cost record. Declare `addons: {costs: {}}` in the stack's "
    "file to have one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A job that has run, as a row of a trace.

    Attributes:
        submit: time of its submission, seconds since 1970.
        seconds: its run time.
        user: the user who created it; empty if unknown.
        pods: number of its pods.
        cpu: CPUs that each pod requests.
        memory: bytes that each pod requests.
        gpus: accelerators that each pod requests.
        gpu_type: type of the accelerators; empty for any of its queue's.
        queue: its LocalQueue as `namespace/name`, or the pool of work in none; empty if unknown.
        priority: name of its WorkloadPriorityClass; empty for none.
        keep_node: whether no scale-down ends it; None if unknown.
    """

    submit: float
    seconds: float
    name: str
    user: str = ""
    pods: int = 1
    cpu: float = 0.0
    memory: float = 0.0
    gpus: int = 0
    gpu_type: str = ""
    queue: str = ""
    priority: str = ""
    keep_node: bool | None = None


def to_csv(rows: Iterable[TraceRow]) -> str:
    """Return a trace, sorted by submission."""
    text = io.StringIO()
    cells = [_cells(row) for row in sorted(rows, key=lambda row: (row.submit, row.name))]
    writer: csv.DictWriter[str] = csv.DictWriter(text, cells[0] if cells else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    return text.getvalue()


def _cells(row: TraceRow) -> dict[str, str]:
    millicores, mebibytes = math.ceil(row.cpu * 1000), math.ceil(row.memory / _MIB)
    return {
        "submit": f"{datetime.fromtimestamp(row.submit, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "duration": f"{row.seconds:.0f}",
        "name": row.name,
        "user": row.user,
        "pods": str(row.pods),
        "cpu": quantities.cpu(millicores) if millicores else "",
        "memory": quantities.memory(mebibytes) if mebibytes else "",
        "gpus": str(row.gpus),
        "gpu_type": row.gpu_type,
        "queue": row.queue,
        "priority": row.priority,
        "checkpoint": "",
        "deadline": "",
        "keep_node": "" if row.keep_node is None else str(row.keep_node).lower(),
    }


def anonymous(rows: Iterable[TraceRow], key: bytes) -> list[TraceRow]:
    """Replace names and users: equal ones with equal pseudonyms, which cannot be reversed without the key."""

    def pseudonym(kind: str, text: str) -> str:
        return f"{kind}-{hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:12]}" if text else ""

    return [replace(row, name=pseudonym("job", row.name), user=pseudonym("user", row.user)) for row in rows]


class TraceExportError(EbbtideError):
    """There is no work to export."""

    rule = "trace-export"


@dataclass(slots=True)
class History:
    """The jobs of a cluster.

    Attributes:
        rows: the jobs that have run, as rows of a trace.
        notes: sentences about what the trace lacks, or has instead of a fact.
    """

    rows: list[TraceRow] = field(default_factory=list[TraceRow])
    notes: list[str] = field(default_factory=list[str])


def read_history(
    api: Api, namespace: str, since: float, now: float, profile: Profile | None = None
) -> History:
    """Read the jobs that have run since a time.

    Args:
        namespace: their namespace; empty for all.
        since: seconds since 1970; jobs that ended before are omitted.
        now: the current time.
        profile: the cluster's profile, for the pools of existing work and their accelerators.

    Raises:
        ClusterError: reading Jobs or pods is forbidden, or the API server does not respond.
        TraceExportError: no job has run.
    """
    existing = read_existing(api, namespace, profile)
    attempts, notes = _attempts(api, namespace, since, now)
    history = _Merging(existing, attempts, since, now, profile).history()
    if not history.rows:
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        raise TraceExportError(
            " ".join((f"No job has run {where} since {moment(since)}, so there is no trace.", *notes))
        )
    return History(history.rows, [*notes, *history.notes])


def _attempts(api: Api, namespace: str, since: float, now: float) -> tuple[list[Line], list[str]]:
    """Return the recorded attempts, and what is missing among them."""
    try:
        record = find_record(api, since, now)
    except ApiError as error:
        return [], [f"Deleted jobs are missing: the cost record cannot be read ({error})."]
    if record is None:
        return [], [_NO_RECORD]
    lines = [line for line in record.lines if line.kind == "attempt" and namespace in ("", line.namespace)]
    begin = f"Jobs that were deleted before the cost record's begin, {moment(record.since)}, are missing."
    return lines, [begin] if record.since > since else []


class _Merging:
    """Existing work with its recorded attempts, then deleted work."""

    def __init__(
        self,
        existing: Sequence[ExistingWork],
        attempts: Iterable[Line],
        since: float,
        now: float,
        profile: Profile | None,
    ) -> None:
        self._existing, self._since, self._now, self._profile = existing, since, now, profile
        self._counts = Counter[str]()
        self._lines: dict[tuple[str, str, float], list[Line]] = {}
        for (namespace, job, submitted), lines in by_job(attempts).items():
            if submitted is None:
                self._counts["unknown"] += len(lines)
            else:
                self._lines[namespace, job, submitted] = lines

    def history(self) -> History:
        """Return the rows and the remarks about them."""
        rows = [row for work in self._existing for row in self._row(work, self._take(work))]
        rows += [row for lines in self._lines.values() for row in self._recorded(lines)]
        notes = [
            f"{several(count, 'job')} {one if count == 1 else more} {rest}"
            for kind, (one, more, rest) in _REMARKS.items()
            if (count := self._counts[kind])
        ]
        return History(rows, notes)

    def _take(self, work: ExistingWork) -> list[Line]:
        """Return and remove the attempts of existing work: of its pods, or of its name since its creation."""
        keys = [
            key
            for key, lines in self._lines.items()
            if (key[:2] == (work.namespace, work.name) and key[2] >= work.created - _ROUNDED)
            or any(line.uid in work.pod_uids for line in lines)
        ]
        return [line for key in keys for line in self._lines.pop(key)]

    def _row(self, work: ExistingWork, lines: Sequence[Line]) -> Iterator[TraceRow]:
        if work.started is None and not lines:
            self._counts["waiting"] += work.ended is None
            return
        if work.ended is not None and work.ended < self._since:
            return
        last = (work.ended or self._now) - work.started if work.started is not None else 0.0
        requests = work.requests
        self._counts["running"] += work.ended is None
        self._counts["mixed"] += requests.is_mixed
        self._counts["disrupted"] += any(line.disruptions for line in lines)
        pool = requests.pool
        yield TraceRow(
            submit=work.created,
            seconds=max(last, pod_seconds(lines) / requests.pods),
            name=work.name,
            user=work.user,
            pods=requests.pods,
            cpu=requests.cpu,
            memory=requests.memory,
            gpus=requests.gpus,
            gpu_type=self._accelerator(pool) if requests.gpus else "",
            queue=self._queue(work.namespace, work.queue, pool or next((line.pool for line in lines), "")),
            priority=work.priority,
            keep_node=requests.keep_node,
        )

    def _recorded(self, lines: Sequence[Line]) -> Iterator[TraceRow]:
        """Yield the row of work that was deleted; as many pods as ran at once."""
        if max(line.end for line in lines) < self._since:
            return
        first, pods = lines[0], pods_at_once(lines)
        size = largest(lines)
        self._counts["mixed"] += len({(line.cpu, line.memory, line.gpus) for line in lines}) > 1
        self._counts["disrupted"] += any(line.disruptions for line in lines)
        self._counts["running"] += any(line.is_open for line in lines)
        yield TraceRow(
            submit=first.submitted or 0.0,
            seconds=pod_seconds(lines) / pods,
            name=first.job,
            user=first.user,
            pods=pods,
            gpu_type=self._accelerator(first.pool) if size["gpus"] and not first.queue else "",
            queue=self._queue(first.namespace, first.queue, first.pool),
            priority=first.priority,
            **size,
        )

    def _accelerator(self, pool: str) -> str:
        """Return the type of a pool's accelerators; empty if it is unknown."""
        pools = self._profile.pools if self._profile else ()
        return next((item.accelerator.type for item in pools if item.name == pool and item.accelerator), "")

    def _queue(self, namespace: str, queue: str, pool: str) -> str:
        """Return a LocalQueue or the pool of work in no queue, with the namespace; empty if unknown."""
        self._counts["unqueued"] += not (queue or pool)
        return f"{namespace}/{queue or pool}" if queue or pool else ""


def largest(lines: Iterable[Line]) -> dict[str, Any]:
    """Return the most CPUs, bytes and accelerators that one of some attempts requests."""
    sizes = [{"cpu": line.cpu, "memory": line.memory, "gpus": line.gpus} for line in lines]
    return {key: max(size[key] for size in sizes) for key in sizes[0]}


def pod_seconds(lines: Iterable[Line]) -> float:
    """Return the run time of attempts."""
    return sum(line.end - line.start for line in lines)


def pods_at_once(lines: Sequence[Line]) -> int:
    """Return the mean number of attempts at one time, while there are any: a replacement that starts before
    its predecessor has ended is not a second pod."""
    covered, latest = 0.0, 0.0
    for line in sorted(lines, key=lambda line: line.start):
        covered += max(0.0, line.end - max(line.start, latest))
        latest = max(latest, line.end)
    return max(1, round(pod_seconds(lines) / covered)) if covered else 1
