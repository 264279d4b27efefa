"""The document of `ebbtide status --format json`, and its tables for a terminal of 80 columns."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ebbtide.analysis.preview.fitted_table import plain_table
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.operations.access import asleep_message
from ebbtide.text import command_line, several
from ebbtide.values import durations
from ebbtide.values.clock import in_utc
from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/status/v1"
_SHOWN: Final = 10
"""Maximum number of rows for work, and for the waiting work of a queue."""
_WHOLE: Final = {"CAPACITY", "STATE", "OLDEST", "FOR"}
"""Columns of few words, which a narrow terminal does not break; names break."""


class PoolStatus(DocumentPart):
    """A node pool. Each node is in one of the four counts."""

    name: str
    """Name in the declaration."""
    capacity: str
    """Capacity type, such as `spot`."""
    machine: str
    """Machine type; empty if there are several."""
    ready: int
    """Nodes that accept pods."""
    coming: int
    """Nodes younger than 15 minutes that are not ready yet."""
    cordoned: int
    """Unschedulable nodes."""
    not_ready: int
    """Older nodes that are not ready."""
    maximum: int
    """Maximum node count."""
    oldest: datetime | None
    """Creation time of the oldest node; null without nodes."""
    usd_per_hour: float | None
    """Current cost of the nodes, USD per hour; null if no price is known."""
    estimated: bool
    """Whether a price of them is an estimate."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.ready + self.coming + self.cordoned + self.not_ready


class WorkStatus(DocumentPart):
    """Work that users created and that has not ended."""

    kind: str
    """Kind, such as `Job`."""
    namespace: str
    """Namespace."""
    name: str
    """Name."""
    since: datetime
    """Creation time."""
    pods: int
    """Number of pods that have not terminated."""
    pools: tuple[str, ...]
    """Pools of those pods; empty if they are on no node of the stack."""


class WaitingWork(DocumentPart):
    """Work that waits in a queue."""

    kind: str
    """Kind, such as `Job`."""
    namespace: str
    """Namespace."""
    name: str
    """Name."""
    since: datetime
    """Creation time of its Workload."""
    reason: str
    """Cause, as in `ebbtide why`."""
    never: str = ""
    """Reason why no pool of the queue can ever run it; empty if one can."""


class QueueStatus(DocumentPart):
    """A queue of the declaration."""

    name: str
    """Name in the declaration."""
    held: bool
    """True if one of its ClusterQueues admits nothing: `stopPolicy` is not `None`."""
    admitted: int
    """Number of admitted workloads that have not finished."""
    waiting: tuple[WaitingWork, ...]
    """Work that is not admitted, oldest first."""


class ReservationStatus(DocumentPart):
    """A reservation that the stack has requested for a pool."""

    pool: str
    """Name of the pool."""
    begins: datetime
    """Its begin."""
    ends: datetime
    """Its end, at which the cloud ends the machines."""
    ends_work: tuple[str, ...]
    """Work on the pool without a time limit before the end, such as `Job train in vision`."""


class OtherQueue(DocumentPart):
    """A ClusterQueue that is not the stack's, and shares a cohort with those of the stack."""

    name: str
    """Name of the ClusterQueue."""
    cohort: str
    """The cohort that it shares with the stack."""
    admitted: int
    """Number of admitted workloads."""
    waiting: int
    """Number of pending workloads."""


class UnusedGpus(DocumentPart):
    """GPUs that a pod holds and has not used for an hour."""

    namespace: str
    """Namespace of the pod."""
    pod: str
    """Name of the pod."""
    node: str
    """Its node."""
    gpus: int
    """Number of the unused GPUs."""


class GpuStatus(DocumentPart):
    """Use of the GPUs, from the managed Prometheus of `addons.metrics`."""

    measured: bool
    """False without `addons.metrics`."""
    unknown: str = ""
    """Reason why the metrics could not be read; empty if they were."""
    unused: tuple[UnusedGpus, ...] = ()
    """Pods with unused GPUs."""


class CostStatus(DocumentPart):
    """Cost at the list prices of the dated price table, or the stack's own prices."""

    usd_per_hour: float
    """Cost of the existing nodes and of everything that is always billed, USD per hour."""
    always_usd_per_hour: float
    """Cost without nodes: control plane, addresses, gateways, disks of add-ons."""
    unknown: tuple[str, ...]
    """Items without a known price, which are not included."""
    estimated: tuple[str, ...]
    """Items with an estimated price; the cost is then an estimate."""
    prices_of: tuple[str, ...]
    """Dates of the prices."""
    spent_usd: float | None = None
    """Cost of the nodes in the last 30 days, USD, from the add-on `costs`; null without its record. Nodes
    without a known price are not included."""
    idle_usd: float | None = None
    """Part of it that no recorded attempt used."""
    spent_since: datetime | None = None
    """Beginning of the period, or of the record."""


class Status(DocumentPart):
    """The document of `ebbtide status --format json`."""

    version: str = VERSION
    """Version of the document."""
    stack: str
    """Name of the stack."""
    cluster: str
    """Name of the cluster."""
    time: datetime
    """Time of the status."""
    expires: datetime | None
    """Expiry; null for a permanent cluster."""
    asleep: bool = False
    """True after `ebbtide sleep`, until nodes start: queues are held, and machines stopped."""
    pools: tuple[PoolStatus, ...]
    """Node pools."""
    work: tuple[WorkStatus, ...]
    """Work outside of queues or admitted by them, oldest first."""
    queues: tuple[QueueStatus, ...]
    """Queues."""
    reservations: tuple[ReservationStatus, ...] = ()
    """Requested reservations."""
    others: tuple[OtherQueue, ...] = ()
    """Other ClusterQueues in the cohorts of the stack's."""
    kueue: tuple[str, ...] = ()
    """Settings of an existing Kueue that differ from those that the queues depend on, as sentences."""
    gpus: GpuStatus | None
    """Use of the GPUs; null for a cluster without GPU pools."""
    cost: CostStatus
    """Cost."""


def never_message(queue: str, work: WaitingWork) -> str:
    """Return the message about waiting work that no pool of its queue can run."""
    return (
        f"{work.kind} {work.name} in {work.namespace} cannot run in queue {queue}: {work.never}. Delete it "
        "and submit it again with smaller requests, or declare a pool for it in the queue."
    )


def tables(status: Status) -> RenderableType:
    """Return the tables of a status: pools, work, queues, and sentences about cost and expiry."""
    return Group(
        Text(f"Stack {status.stack}, cluster {status.cluster}, {in_utc(status.time)}"),
        *([Text(asleep_message(status.stack))] if status.asleep else []),
        Text(),
        _pools(status.pools, status.time),
        Text(),
        *_work(status.work, status.time),
        *_queues(status.queues, status.time),
        *(Text(_reservation(item, status.time)) for item in status.reservations),
        *_others(status.others),
        *(Text(f"The cluster's Kueue, {sentence}") for sentence in status.kueue),
        *map(Text, _gpus(status.gpus)),
        *map(Text, _cost(status)),
        Text(_expiry(status)),
    )


def _pools(pools: Sequence[PoolStatus], now: datetime) -> Table:
    counts = ("READY", "COMING", "CORDONED", *(("NOT READY",) if any(p.not_ready for p in pools) else ()))
    right = (*counts, "MAX", "$/H")
    table = plain_table("POOL", "CAPACITY", *counts, "MAX", "OLDEST", "$/H", right=right, whole=_WHOLE)
    for pool in pools:
        numbers = [pool.ready, pool.coming, pool.cordoned]
        if "NOT READY" in counts:
            numbers.append(pool.not_ready)
        table.add_row(
            Text(pool.name, style="" if pool.nodes else "dim"),
            pool.capacity,
            *(str(number or "-") for number in numbers),
            str(pool.maximum),
            durations.rounded(now - pool.oldest) if pool.oldest else "",
            _hourly(pool),
        )
    return table


def _hourly(pool: PoolStatus) -> str:
    if pool.usd_per_hour is None:
        return "?"
    return f"{'~' if pool.estimated else ''}{pool.usd_per_hour:.2f}" if pool.nodes else ""


def _work(work: Sequence[WorkStatus], now: datetime) -> Iterator[RenderableType]:
    if not work:
        yield Text("No work runs.")
        yield Text()
        return
    table = plain_table("WORK", "NAMESPACE", "PODS", "ON", "FOR", right=("PODS",), whole=_WHOLE)
    for item in work[:_SHOWN]:
        on = ", ".join(item.pools) or ("no node of the stack" if item.pods else "no pod")
        table.add_row(
            Text(f"{item.kind} {item.name}"),
            item.namespace,
            str(item.pods),
            on,
            durations.rounded(now - item.since),
        )
    yield table
    if len(work) > _SHOWN:
        yield Text(f"… and {len(work) - _SHOWN} more, created later.")
    yield Text()


def _queues(queues: Sequence[QueueStatus], now: datetime) -> Iterator[RenderableType]:
    if not queues:
        return
    table = plain_table("QUEUE", "STATE", "ADMITTED", "WAITING", right=("ADMITTED", "WAITING"), whole=_WHOLE)
    for queue in queues:
        table.add_row(
            Text(queue.name), "held" if queue.held else "open", str(queue.admitted), str(len(queue.waiting))
        )
    yield table
    for queue in queues:
        alike: dict[tuple[str, str], list[WaitingWork]] = {}
        for item in queue.waiting:
            alike.setdefault((item.reason, item.never), []).append(item)
        groups = list(alike.values())
        for items in groups[:_SHOWN]:
            yield from _reason(queue, items, now)
        if rest := sum(map(len, groups[_SHOWN:])):
            yield Text(f"… and {rest:,} more in {queue.name}.")
    yield Text()


def _others(queues: Sequence[OtherQueue]) -> Iterator[RenderableType]:
    for queue in queues[:_SHOWN]:
        counts = f"{queue.admitted:,} admitted, {queue.waiting:,} waiting"
        yield Text(f"ClusterQueue {queue.name} in cohort {queue.cohort} is not the stack's: {counts}.")
    if len(queues) > _SHOWN:
        yield Text(f"… and {len(queues) - _SHOWN} more.")
    if queues:
        yield Text()


def _reason(queue: QueueStatus, items: Sequence[WaitingWork], now: datetime) -> Iterator[RenderableType]:
    """Yield the reason why work waits, once for all work that has it."""
    first = items[0]
    work = f"{first.kind} {first.name} in {first.namespace}"
    others = f" and {len(items) - 1:,} more wait" if len(items) > 1 else " waits"
    since = durations.rounded(now - first.since)
    waits = f"{others} in {queue.name} for {'up to ' if len(items) > 1 else ''}{since}"
    yield Text(f"{work}{waits}{':' if first.reason else '.'}")
    if first.reason:
        yield Padding(Text(first.reason), (0, 0, 0, 2))
    if first.never:
        yield Padding(Text(never_message(queue.name, first), style="bold"), (0, 0, 0, 2))


def _gpus(gpus: GpuStatus | None) -> Iterator[str]:
    if gpus is None:
        return
    if not gpus.measured:
        yield "The use of GPUs is not measured: addons.metrics is off."
    elif gpus.unknown:
        yield f"The use of GPUs is unknown: {gpus.unknown}"
    elif not gpus.unused:
        yield "No GPU is known to be held without use for an hour."
    for item in gpus.unused[:_SHOWN]:
        held = several(item.gpus, "GPU")
        yield f"Pod {item.pod} in {item.namespace} holds {held} on {item.node}, unused for an hour."
    if len(gpus.unused) > _SHOWN:
        yield f"… and {len(gpus.unused) - _SHOWN} more pods with unused GPUs."


def _reservation(item: ReservationStatus, now: datetime) -> str:
    name = f"The reservation of pool {item.pool}"
    if now < item.begins:
        return f"{name} begins at {in_utc(item.begins)}, in {durations.elapsed(item.begins - now)}."
    if now >= item.ends:
        return f"{name} ended at {in_utc(item.ends)}: no machine comes for the pool."
    ends = f"{name} ends at {in_utc(item.ends)}, in {durations.elapsed(item.ends - now)}"
    if not item.ends_work:
        return f"{ends}."
    shown = ", ".join(item.ends_work[:_SHOWN])
    more = f" and {len(item.ends_work) - _SHOWN} more" if len(item.ends_work) > _SHOWN else ""
    return f"{ends}, and with it work that has no time limit before: {shown}{more}."


def _cost(status: Status) -> Iterator[str]:
    cost = status.cost
    now = Amount(cost.usd_per_hour, cost.unknown, cost.estimated)
    always = "" if now.is_unknown else f", ${cost.always_usd_per_hour:.2f} of it without nodes"
    yield f"Cost: {now.words(unknown='an unknown amount')} per hour now{always}."
    if cost.spent_usd is not None and cost.spent_since and cost.idle_usd is not None:
        spent = f"Nodes have cost ${cost.spent_usd:.2f} since {in_utc(cost.spent_since)}"
        yield f"{spent}, ${cost.idle_usd:.2f} of it idle. See `{command_line('cost')}`."
    if cost.unknown:
        yield f"Unknown prices: {', '.join(cost.unknown)}."
    if cost.estimated:
        yield f"Estimated prices: {', '.join(cost.estimated)}."
    if dates := sorted({cost.prices_of[0], cost.prices_of[-1]} if cost.prices_of else ()):
        yield f"Prices of {' to '.join(dates)}."


def _expiry(status: Status) -> str:
    if status.expires is None:
        return "The cluster is permanent."
    if status.expires <= status.time:
        return f"Expired at {in_utc(status.expires)}, {durations.rounded(status.time - status.expires)} ago."
    return f"Expires at {in_utc(status.expires)}, in {durations.elapsed(status.expires - status.time)}."
