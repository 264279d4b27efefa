"""Tables of a stack's status, for a terminal of 80 columns."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.operations.access import asleep_message
from ebbtide.operations.status import never_message
from ebbtide.operations.status_report import (
    GpuStatus,
    PoolStatus,
    QueueStatus,
    Status,
    WaitingWork,
    WorkStatus,
)
from ebbtide.text import command_line, several
from ebbtide.values import durations
from ebbtide.values.clock import in_utc

_SHOWN: Final = 10
"""Maximum number of rows for work, and for the waiting work of a queue."""


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
        *map(Text, _gpus(status.gpus)),
        *map(Text, _cost(status)),
        Text(_expiry(status)),
    )


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _pools(pools: Sequence[PoolStatus], now: datetime) -> Table:
    counts = ("READY", "COMING", "CORDONED", *(("NOT READY",) if any(p.not_ready for p in pools) else ()))
    right = (*counts, "MAX", "$/H")
    table = _table("POOL", "CAPACITY", *counts, "MAX", "OLDEST", "$/H", right=right)
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
    table = _table("WORK", "NAMESPACE", "PODS", "ON", "FOR", right=("PODS",))
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
    table = _table("QUEUE", "STATE", "ADMITTED", "WAITING", right=("ADMITTED", "WAITING"))
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
