"""Sums of the cost record, and of the attempts and nodes that have not ended; and their comparison with a
cloud's billing export.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH
from ebbtide.errors import EbbtideError
from ebbtide.in_pods.cost_recorder import MONTH_LABEL, NAMESPACE, PROGRAM, STATE, months, state_of
from ebbtide.values import clock
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, read_text

By: TypeAlias = Literal["team", "user", "job", "pool"]

_HOUR: Final = 3600.0
_PERIOD: Final = "every five minutes"
"""Schedule of the recorder (components/addons/costs.py)."""
_SMALLEST: Final = 0.0005
AGREEMENT: Final = 0.03
"""Largest difference at which the record agrees with the export, as a part of the billed cost."""
_POOL_TAG: Final = re.compile(r'"aks-managed-poolName"\s*:\s*"([^"]*)"')
"""Tag of an AKS pool's machines in the column of tags, with or without the braces of JSON (Azure docs, cost
details schema, 2026)."""


class CostRecordError(EbbtideError):
    """The cluster has no cost record, or it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An attempt or a node, ended or not; see `recorder`.

    Attributes:
        kind: `attempt` or `node`.
        start: seconds since 1970.
        end: seconds since 1970; for one that has not ended, the time of reading.
        is_open: whether it has not ended.
        uncertain: seconds by which the end may be earlier or later.
        price: price of the node's hour; None if unknown.
        estimated: whether the price is an estimate.
        disruptions: count of disruptions.
        uid: UID of its pod or node.
        submitted: time at which its Job, or its pod without one, was created; None for a node, and for
            attempts of an earlier version's record.
        queue: its LocalQueue; empty for none.
        priority: its WorkloadPriorityClass; empty for none.
        cpu: CPUs that the pod requests.
        memory: bytes that it requests.
        gpus: accelerators that it requests.
    """

    kind: str
    start: float
    end: float
    is_open: bool
    uncertain: float = 0.0
    share: float
    price: float | None
    currency: str
    estimated: bool
    disruptions: int
    pool: str
    node: str
    team: str = ""
    user: str = ""
    job: str = ""
    namespace: str = ""
    uid: str = ""
    submitted: float | None = None
    queue: str = ""
    priority: str = ""
    cpu: float = 0.0
    memory: float = 0.0
    gpus: int = 0

    def hours(self, start: float, end: float) -> float:
        """Return the hours of a whole node within a period."""
        return max(0.0, min(self.end, end) - max(self.start, start)) / _HOUR * self.share


@dataclass(frozen=True, slots=True)
class Record:
    """The cost record of a cluster.

    Attributes:
        since: time of the first run; seconds since 1970.
        last: time of the last run.
        now: time of reading.
        lines: everything, ended or not.
    """

    since: float
    last: float
    now: float
    lines: tuple[Line, ...]


@dataclass(slots=True)
class Sum:
    """A sum of lines.

    Attributes:
        name: team, user, Job or pool; empty for work without one.
        node_hours: hours of whole nodes.
        cost: their cost at known prices.
        attempts: count of attempts.
        running: count of attempts, or of nodes, that have not ended.
        disruptions: count of disruptions.
        unpriced_hours: hours of whole nodes without a known price, which are not in `cost`.
        uncertain: cost of the time by which ends may be earlier or later.
        per_hour: cost of an hour of what has not ended.
        estimated: whether a part of the cost is at an estimated price.
    """

    name: str
    node_hours: float = 0.0
    cost: float = 0.0
    attempts: int = 0
    running: int = 0
    disruptions: int = 0
    unpriced_hours: float = 0.0
    uncertain: float = 0.0
    per_hour: float = 0.0
    estimated: bool = False

    @property
    def per_month(self) -> float:
        """Cost of a month of what has not ended."""
        return self.per_hour * HOURS_PER_MONTH

    def add(self, line: Line, start: float, end: float) -> None:
        """Add the part of a line within a period."""
        hours = line.hours(start, end)
        self.node_hours += hours
        self.attempts += line.kind == "attempt"
        self.running += line.is_open
        self.disruptions += line.disruptions
        if line.price is None:
            self.unpriced_hours += hours
            return
        self.cost += hours * line.price
        self.uncertain += line.uncertain / _HOUR * line.share * line.price
        self.per_hour += line.share * line.price if line.is_open else 0.0
        self.estimated |= line.estimated

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "per_month": self.per_month}


@dataclass(frozen=True, slots=True)
class Report:
    """Costs of a period.

    Attributes:
        start: seconds since 1970.
        begins: the start, or the beginning of the record if that is later.
        end: seconds since 1970.
        by: what the work is grouped by.
        currency: currency of all sums.
        work: the work's sums, the highest cost first.
        nodes: the nodes' sums by pool.
        idle: cost of the nodes that no recorded attempt used.
        notes: what is not in the sums.
    """

    start: float
    begins: float
    end: float
    by: By
    currency: str
    work: tuple[Sum, ...]
    nodes: tuple[Sum, ...]
    idle: float
    notes: tuple[str, ...] = field(default=())

    @property
    def total(self) -> Sum:
        """The sum of all nodes."""
        names = [part.name for part in fields(Sum) if part.name != "name"]
        sums = (cast("Any", sum(getattr(item, name) for item in self.nodes)) for name in names)
        return Sum("total", *sums)


def read_record(api: Api, start: float, now: float) -> Record:
    """Read the cost record of a cluster, of what ended since a time.

    Raises:
        CostRecordError: the cluster has none, or it cannot be read.
    """
    try:
        record = find_record(api, start, now)
        installed = record is None and api.find(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{PROGRAM}")
    except ApiError as error:
        raise CostRecordError(f"The cost record in namespace {NAMESPACE} cannot be read: {error}") from None
    if installed:
        raise CostRecordError(
            f"The cost recorder has not completed its first run; it runs {_PERIOD}. See `kubectl get jobs "
            f"--namespace {NAMESPACE}`."
        )
    if record is None:
        raise CostRecordError(
            f"Namespace {NAMESPACE} has no cost record, so past costs are unknown. Declare `addons: {{costs: "
            "{}}` in the stack's file; the record begins with its first run."
        )
    return record


def find_record(api: Api, start: float, now: float) -> Record | None:
    """Return the cost record of a cluster, of what ended since a time; None if it has none."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    state = api.find(f"{path}/{STATE}")
    if state is None:
        return None
    kept, last = state_of(state), dict[str, Any]()
    for name in kept.get("parts", ()):
        last |= state_of(api.find(f"{path}/{name}"))
    written: dict[str, dict[str, Any]] = {}
    for item in api.items(path, labelSelector=f"{MONTH_LABEL} in ({','.join(months(start, now))})"):
        data: dict[str, str] = item.get("data") or {}
        written |= {key: json.loads(text) for key, text in data.items()}
    still = {key: line for key, line in last.items() if line and key not in written}
    lines = (
        *(_line(uid, item, item["end"], is_open=False) for uid, item in written.items()),
        *(_line(uid, item, now, is_open=True) for uid, item in still.items()),
    )
    return Record(kept["since"], kept["last"], now, lines)


def by_job(lines: Iterable[Line]) -> dict[tuple[str, str, float | None], list[Line]]:
    """Return the attempts among lines by namespace, name and submission of their Job."""
    attempts: dict[tuple[str, str, float | None], list[Line]] = {}
    for line in lines:
        if line.kind == "attempt":
            attempts.setdefault((line.namespace, line.job, line.submitted), []).append(line)
    return attempts


def _line(uid: str, item: Mapping[str, Any], end: float, *, is_open: bool) -> Line:
    known: dict[str, Any] = {key: value for key, value in item.items() if key in Line.__slots__}
    known |= {"uid": uid, "end": end, "is_open": is_open}
    return Line(**known)


def report(record: Record, start: float, by: By) -> Report:
    """Sum a record from a time until now."""
    end = record.now
    inside = [line for line in record.lines if line.end >= start and line.start <= end]
    attempts = [line for line in inside if line.kind == "attempt"]
    work = _grouped(attempts, by, start, end)
    nodes = _grouped((line for line in inside if line.kind == "node"), "pool", start, end)
    currencies = {line.currency for line in inside if line.price is not None}
    if len(currencies) > 1:
        raise CostRecordError(f"The record has several currencies: {', '.join(sorted(currencies))}.")
    idle = sum(item.cost for item in nodes) - sum(item.cost for item in work)
    return Report(
        start=start,
        begins=max(start, record.since),
        end=end,
        by=by,
        currency=currencies.pop() if currencies else "USD",
        work=work,
        nodes=nodes,
        idle=idle,
        notes=tuple(_notes(record, start, nodes, work)),
    )


def _grouped(lines: Iterable[Line], by: By, start: float, end: float) -> tuple[Sum, ...]:
    sums: dict[str, Sum] = {}
    for line in lines:
        name = cast("str", getattr(line, by))
        name = f"{line.namespace}/{name}" if by == "job" else name
        sums.setdefault(name, Sum(name)).add(line, start, end)
    return tuple(sorted(sums.values(), key=lambda item: (-item.cost, item.name)))


def _notes(record: Record, start: float, nodes: Sequence[Sum], work: Sequence[Sum]) -> Iterator[str]:
    """Yield what is not in the sums, and what of them is not an exact fact."""
    if start < record.since:
        yield f"The record begins {moment(record.since)}; nodes that were deleted before are not included."
    late = record.now - record.last
    if late > _HOUR / 4:
        yield (
            f"The recorder last ran {moment(record.last)}; work that ended since then is counted as running. "
            f"See `kubectl get jobs --namespace {NAMESPACE}`."
        )
    elif nodes and not work:
        yield (
            f"The recorder last ran {moment(record.last)}, and runs {_PERIOD}: until it has, newer work "
            "counts as idle time."
        )
    for item in nodes:
        if item.unpriced_hours:
            yield f"Pool {item.name}: no price is known for {item.unpriced_hours:.1f} node hours."
        if item.estimated:
            yield f"Pool {item.name}: its price is estimated."
    uncertain = sum(item.uncertain for item in nodes)
    if uncertain >= _SMALLEST:
        yield f"Nodes were deleted between two runs of the recorder: their cost is exact to {uncertain:.2f}."
    yield "Prices are list prices of nodes with their boot disks, before discounts and tax."


def moment(seconds: float) -> str:
    """Return seconds since 1970 as a time in UTC, to the minute."""
    return clock.in_utc(datetime.fromtimestamp(seconds, UTC))


class BillingFileError(EbbtideError):
    """A billing export is invalid."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The cost of a pool in the record and in the billing export.

    Attributes:
        recorded: recorded cost; None if the record lacks the pool, or the price of a part of it.
        billed: billed cost; None if the export lacks the pool.
    """

    pool: str
    recorded: float | None
    billed: float | None

    @property
    def difference(self) -> float | None:
        """Difference as a part of the billed cost; None if one of them is unknown."""
        if self.recorded is None or not self.billed:
            return None
        return (self.recorded - self.billed) / self.billed

    @property
    def agrees(self) -> bool:
        """Return whether the record and the export agree."""
        return self.difference is not None and abs(self.difference) <= AGREEMENT


def compare(file: Path, nodes: Sequence[Sum], currency: str) -> tuple[Comparison, ...]:
    """Compare the nodes' recorded costs with a billing export of the same period.

    Args:
        file: CSV with the columns `pool`, `currency` and `cost`, as of the BigQuery query in docs/costs.md;
            or an Azure cost export, with `Tags`, `BillingCurrency` and `CostInBillingCurrency`.
        nodes: the nodes' sums by pool.

    Raises:
        BillingFileError: the file is invalid, or has another currency; the message has every fault.
    """
    billed: dict[str, float] = {}
    faults: list[str] = []
    for line, pool, written, cost in _rows(file):
        try:
            amount = float(cost)
        except ValueError:
            faults.append(f"{file}:{line}: The cost is {cost!r}. Write a number.")
            continue
        if written != currency:
            faults.append(f"{file}:{line}: The currency is {written!r}, and the record's is {currency}.")
        billed[pool] = billed.get(pool, 0.0) + amount
    if faults:
        raise BillingFileError("\n".join(faults))
    recorded = {item.name: None if item.unpriced_hours else item.cost for item in nodes}
    return tuple(
        Comparison(pool, recorded.get(pool), billed.get(pool)) for pool in sorted({*recorded, *billed})
    )


def _rows(file: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line, pool, currency and cost of each row about a pool."""
    try:
        reader = csv.DictReader(io.StringIO(read_text(file, LARGEST_GENERATED)))
    except UserFileError as error:
        raise BillingFileError(f"{file}: {error}") from None
    columns = {name.lower(): name for name in reader.fieldnames or ()}
    if {"pool", "currency", "cost"} <= columns.keys():
        names = [columns[name] for name in ("pool", "currency", "cost")]
    elif {"tags", "billingcurrency", "costinbillingcurrency"} <= columns.keys():
        names = [columns[name] for name in ("tags", "billingcurrency", "costinbillingcurrency")]
    else:
        raise BillingFileError(
            f"{file}:1: It has the columns {', '.join(columns) or 'none'}. Write pool, currency and cost, or "
            "export Azure's Tags, BillingCurrency and CostInBillingCurrency."
        )
    for row in reader:
        pool, currency, cost = (row[name] or "" for name in names)
        if "tags" in columns:
            tag = _POOL_TAG.search(pool)
            pool = tag[1] if tag else ""
        if pool:
            yield reader.line_num, pool, currency, cost
