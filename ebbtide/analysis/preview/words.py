"""Short descriptions of a preview's facts, for tables and trees."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebbtide.analysis.preview.preview_document import (
    AmountReport,
    CostReport,
    NodesReport,
    PoolReport,
    Preview,
    QueueReport,
    ResourceReport,
)
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH
from ebbtide.values import durations
from ebbtide.values.clock import in_utc


def type_words(token: str) -> str:
    """Format a type token for display: `gcp.container.NodePool` for `gcp:container/nodePool:NodePool`.

    A Kubernetes kind has no group or version, as in `kubectl`.
    """
    package, module, name = [*token.split(":", 2), "", ""][:3]
    if (package, module) == ("pulumi", "providers"):
        return f"provider {name}"
    if package == "kubernetes":
        return f"{package}.{name}"
    head, _, tail = module.rpartition("/")
    if head and tail.lower() == name.lower():
        module = head
    return ".".join(part for part in (package, module, name) if part)


def name_below(name: str, parent: str | None) -> str:
    """Abbreviate a logical name by its parent's prefix: `…-nat` for `train-network-nat`."""
    if parent is None:
        return name
    if name == parent:
        return "…"
    rest = name.removeprefix(parent)
    return f"…{rest}" if rest != name and not rest[0].isalnum() else name


def nodes_words(nodes: NodesReport) -> str:
    """Format node counts: `0 to 4`, or `3` for a fixed number."""
    if nodes.fixed is not None:
        return str(nodes.fixed)
    return f"{nodes.minimum or 0} to {'?' if nodes.maximum is None else nodes.maximum}"


def accelerator_words(pool: PoolReport) -> str:
    """Format the accelerators of a node: `4 x nvidia-tesla-t4`; empty for a CPU pool."""
    accelerator = pool.accelerator
    if accelerator is None:
        return ""
    details = f"slices of {accelerator.topology}" if accelerator.topology else accelerator.sharing
    return f"{accelerator.count} x {accelerator.type}" + (f" ({details})" if details else "")


def capacity_limit(pool: PoolReport) -> str:
    """Format the limits of a capacity type: `up to 7 days`; empty for none."""
    details: list[str] = []
    if pool.reservation:
        details.append(f"reservation {pool.reservation.rpartition('reservations/')[2]}")
    if pool.max_run_seconds is not None:
        details.append(f"up to {durations.in_words(pool.max_run_seconds)}")
    if pool.max_price is not None:
        details.append(f"at most {pool.max_price} USD/h")
    return ", ".join(details)


def number_words(number: float | None) -> str:
    """Format a quantity of a machine; `?` if unknown."""
    return "?" if number is None else f"{number:g}"


def amount_words(amount: AmountReport | None, *, monthly: bool = False) -> str:
    """Format an amount for a table, as `Amount.marked`; `-` for none."""
    return amount.amount.marked(monthly=monthly) if amount else "-"


def _reservation_charges(cost: CostReport) -> Iterator[str]:
    """Yield the charge of each reservation in words; one for a period with its amount for the whole of it."""
    for charge in cost.charges:
        if charge.begins and charge.ends and charge.whole:
            hours = (charge.ends - charge.begins).total_seconds() / 3600
            whole = (charge.whole.amount * (1 / HOURS_PER_MONTH)).words(monthly=True)
            yield (
                f"{charge.item}, {in_utc(charge.begins)} to {in_utc(charge.ends)}: {whole} in {hours:g} h "
                f"({charge.maximum.amount.words()} per hour), used or not"
            )
        elif charge.reserves:
            hour, month = (charge.maximum.amount.words(monthly=monthly) for monthly in (False, True))
            yield f"{charge.item}, {hour} per hour ({month} per month): {charge.note}"


def cost_notes(preview: Preview) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the charges of a period, the items of a stack's cost without a known price, those with an
    estimated one, and the machines without known quotas, each with a title."""
    cost = preview.cost
    if reserved := tuple(_reservation_charges(cost)):
        yield "Reserved", reserved
    committed = tuple(
        f"{charge.item}, {charge.maximum.amount.words()} per hour: {charge.note}"
        for charge in cost.charges
        if charge.committed
    )
    if committed:
        yield "Committed", committed
    amounts = (cost.idle, cost.maximum, cost.on_demand)
    for title, field in (("Without price", "unknown"), ("Estimated price", "estimated")):
        if items := tuple(dict.fromkeys(item for amount in amounts for item in getattr(amount, field))):
            yield title, items
    if preview.without_quota:
        yield "Quotas unknown", preview.without_quota


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A flavor of a queue, in words.

    Attributes:
        names: names of its LocalQueues.
        pool: the flavor's pool; for alternative pools, the flavor.
        guarantee: nominal quota, in accelerators or else in CPUs, with the resource.
        most: quota with what can be borrowed.
        weight: share of the unused quota of others.
        gpu_hour: price of an accelerator for an hour, USD.
    """

    names: str
    pool: str
    guarantee: str
    most: str
    weight: str
    gpu_hour: str


def queue_rows(queues: Sequence[QueueReport]) -> list[QueueRow]:
    """Return a row for each flavor of each queue."""
    return [
        QueueRow(
            ", ".join(queue.local_queues),
            quota.pool or quota.flavor,
            f"{quota.nominal:g} {quota.resource}",
            f"{quota.most:g}",
            queue.weight,
            amount_words(queue.gpu_hours.get(quota.pool or quota.flavor)),
        )
        for queue in queues
        for quota in queue.by_flavor
    ]


def quotas_words(quotas: Iterable[tuple[str, str, object]]) -> str:
    """Format quotas of region, name and amount by their regions: `us-central1: CPUS 8, N2_CPUS 16; …`."""
    regions: dict[str, list[str]] = {}
    for region, name, amount in quotas:
        regions.setdefault(region, []).append(f"{name} {amount}")
    return "; ".join(f"{region}: {', '.join(names)}" for region, names in regions.items())


def price_dates(cost: CostReport) -> str:
    """Format the dates of prices: `list prices of 2025-03 to 2026-09`."""
    if not cost.prices_from:
        return "no known price"
    if cost.prices_from == cost.prices_to:
        return f"list prices of {cost.prices_from}"
    return f"list prices of {cost.prices_from} to {cost.prices_to}"


def never_zero(preview: Preview) -> list[str]:
    """Return the work pools with a minimum above zero, as `cpu (2)`."""
    return [
        f"{pool.name} ({minimum})"
        for pool in preview.pools
        if pool.role == "work" and (minimum := pool.nodes.idle)
    ]


def overrides_words(overrides: Mapping[str, Any]) -> str:
    """Format overridden inputs: `overrides: nodeConfig.gvnic.enabled = true`; empty if there are none."""
    written = ", ".join(f"{path} = {json.dumps(value)}" for path, value in overrides.items())
    return f"overrides: {written}" if written else ""


def annotations(resource: ResourceReport) -> list[tuple[str, str]]:
    """Return a resource's special options, each with a display style.

    `deleted_with` is omitted: nearly every resource of a cluster has it, and a symbol shows it.
    """
    texts: list[tuple[str, str]] = []
    if resource.kind == "read":
        texts.append(("existing", "cyan"))
    if resource.import_id:
        texts.append((f"imports {resource.import_id}", "cyan"))
    if resource.protect and resource.kind != "component":
        texts.append(("protected", "bold green"))
    if resource.retain_on_delete and resource.kind != "component":
        texts.append(("retained on delete", "yellow"))
    if resource.secrets:
        texts.append((f"secret {', '.join(_last(path) for path in resource.secrets)}", "magenta"))
    assumed = [_last(path) for path in resource.assumed_inputs if path not in resource.secrets]
    if assumed:
        texts.append((f"assumed {', '.join(assumed)}", "italic"))
    if resource.remote:
        texts.append(("children created by its provider", "italic"))
    return texts


def _last(path: str) -> str:
    """Return the last segment of a property path, without its quotes."""
    return path.rpartition('["')[2].removesuffix('"]') if path.endswith('"]') else path.rpartition(".")[2]
