"""Rules for node counts, and for the cost of idle nodes."""

from collections.abc import Iterator

from ebbtide.catalog import CLOUD_SPECS, CloudKind, node_items
from ebbtide.model.faults import Fault
from ebbtide.model.rules.rule import PoolIn, PoolRule, Severity
from ebbtide.model.rules.words import dollars, service_name
from ebbtide.model.tpus import slice_nodes
from ebbtide.model.zones import zones_of

_AKS_SYSTEM_PODS = 30
_TOOLKIT = "cluster-toolkit modules/compute/gke-node-pool/main.tf@01a7a3ed, preconditions"


def _count_or_limits(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    if nodes.count is not None and (nodes.min is not None or nodes.max is not None):
        yield Fault(
            pool.at("nodes.count"),
            "A fixed count and limits for scaling are both written.",
            "The autoscaler and the fixed count would fight over the pool, and the cloud refuses it.",
            "Write count alone, or min and max alone.",
        )


def _count_fits_the_zones(pool: PoolIn) -> Iterator[Fault]:
    count, zones = pool.pool.nodes.count, zones_of(pool.pool, pool.site)
    if count is not None and count % zones:
        even = (count // zones + 1) * zones
        yield Fault(
            pool.at("nodes.count"),
            f"{count} nodes cannot be spread evenly over {zones} zones.",
            f"GKE counts nodes by zone, and would make {count - count % zones} or {even}.",
            f"Write a multiple of {zones}, such as count: {even}, or name the zones it is to be in.",
        )


def _has_an_upper_limit(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    if nodes.count is None and nodes.max is None and slice_nodes(pool.pool, pool.machine) == 1:
        yield Fault(
            pool.at("nodes"),
            "Nothing says how many nodes the pool may have.",
            "Neither its cost nor its quota would have a limit.",
            "Write nodes: {max: 4}, or nodes: {count: 4} for a fixed number.",
        )


def _min_not_above_max(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    if nodes.min is not None and nodes.max is not None and nodes.min > nodes.max:
        yield Fault(
            pool.at("nodes.min"),
            f"min {nodes.min} is above max {nodes.max}.",
            "The node pool could not be created.",
            f"Write min: {nodes.max} or less, or max: {nodes.min} or more.",
        )


def _system_floor(pool: PoolIn) -> Iterator[Fault]:
    spec, nodes = CLOUD_SPECS[pool.site.cloud], pool.pool.nodes
    for field, number in (("min", nodes.min), ("max", nodes.max), ("count", nodes.count)):
        if pool.pool.is_system and number is not None and number < spec.system_nodes:
            yield Fault(
                pool.at(f"nodes.{field}"),
                f"{field} {number} is too few for a system pool on {service_name(pool.site.cloud)}.",
                spec.system_nodes_reason,
                f"Write {field}: {spec.system_nodes} or more.",
            )


def _pods_per_node(pool: PoolIn) -> Iterator[Fault]:
    least, most = CLOUD_SPECS[pool.site.cloud].pods_per_node
    pods = pool.pool.max_pods_per_node
    if pods is not None and not least <= pods <= most:
        yield Fault(
            pool.at("maxPodsPerNode"),
            f"{service_name(pool.site.cloud)} cannot have {pods} pods on a node.",
            "The node pool could not be created.",
            f"Write a number from {least} to {most}, or leave it out.",
        )


def _aks_system_pods(pool: PoolIn) -> Iterator[Fault]:
    pods, nodes = pool.pool.max_pods_per_node, pool.pool.nodes
    spec = CLOUD_SPECS[CloudKind.AKS]
    fewest = nodes.count or nodes.min or spec.system_nodes
    least = spec.pods_per_node[0]
    if pool.pool.is_system and pods is not None and pods >= least and pods * fewest < _AKS_SYSTEM_PODS:
        yield Fault(
            pool.at("maxPodsPerNode"),
            f"{fewest} nodes with {pods} pods each hold {pods * fewest} pods, and a system pool needs 30.",
            "The node pool could not be created.",
            f"Write maxPodsPerNode: {-(-_AKS_SYSTEM_PODS // fewest)} or more.",
        )


def hourly_price(pool: PoolIn) -> tuple[float, bool] | None:
    """Return the price of a node of the pool in USD per hour, with accelerators and without its disk, and
    whether it is an estimate; None if the price table has none."""
    site, machine, accelerator = pool.site, pool.machine, pool.pool.accelerator
    if machine is None:
        return None
    attached = (accelerator.type, accelerator.count) if accelerator and not machine.accelerator else ("", 0)
    capacity, total, estimated = pool.pool.capacity.kind, 0.0, False
    for _, price, count in node_items(site.cloud, site.region, machine.name, *attached):
        rate = price.of(capacity) if price else None
        if price is None or rate is None:
            return None
        total += rate * count
        estimated = estimated or price.is_estimated(capacity)
    return total, estimated


def _never_zero(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    field, fewest = ("count", nodes.count) if nodes.count else ("min", nodes.min)
    if pool.pool.is_system or not fewest:
        return
    cost = "money, how much is not in the price table,"
    if price := hourly_price(pool):
        node, is_estimated = price
        cost = f"at least {'about ' if is_estimated else ''}{dollars(node * fewest)} an hour"
    yield Fault(
        pool.at(f"nodes.{field}"),
        f"The pool never has fewer than {fewest} node{'s' if fewest > 1 else ''}.",
        f"It costs {cost} when nothing runs.",
        "Leave min out, so that it scales to zero."
        if field == "min"
        else "Write max in place of count, so that it scales to zero.",
    )


RULES: tuple[PoolRule, ...] = (
    PoolRule("a fixed count or limits, not both", _TOOLKIT, _count_or_limits),
    PoolRule(
        "a fixed count fits the zones",
        "pulumi-gcp 10.2.0, NodePool.initialNodeCount: nodes in each zone",
        _count_fits_the_zones,
        CloudKind.GKE,
    ),
    PoolRule(
        "an upper limit of nodes",
        "pulumi-gcp 10.2.0 and azure-native 3.29.0: autoscaling needs a maximum",
        _has_an_upper_limit,
    ),
    PoolRule(
        "min not above max", "kubernetes/autoscaler cluster-autoscaler/FAQ.md (2026)", _min_not_above_max
    ),
    PoolRule(
        "enough system nodes",
        "azure-aks-docs use-system-pools.md (2026-04-30): at least two; GKE docs, node-pools (2026): "
        "system pods need a node",
        _system_floor,
    ),
    PoolRule(
        "pods per node in the cloud's range",
        "GKE docs, flexible-pod-cidr (2026); azure-aks-docs concepts-network-ip-address-planning.md "
        "(2024-05-28)",
        _pods_per_node,
    ),
    PoolRule(
        "room for 30 pods in an AKS system pool",
        "azure-aks-docs use-system-pools.md (2026-04-30), concepts-network-ip-address-planning.md "
        "(2024-05-28)",
        _aks_system_pods,
        CloudKind.AKS,
    ),
    PoolRule(
        "a work pool reaches zero",
        "kubernetes/autoscaler FAQ, scale-down; prices: catalog/data/prices.csv",
        _never_zero,
        severity=Severity.WARNED,
    ),
)
