"""Rows of a trace of jobs as CSV, which `ebbtide replay` reads."""

import csv
import hashlib
import hmac
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from ebbtide.values import quantities

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A job that has run, as a row of a trace.

    Attributes:
        submit: time of its submission, seconds since 1970.
        seconds: its run time.
        name: its name.
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
