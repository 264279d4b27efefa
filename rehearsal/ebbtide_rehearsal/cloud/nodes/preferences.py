"""Choice between node pools: the expanders of GKE and AKS, and ComputeClasses."""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, assert_never

import yaml

from ebbtide.clients.kubernetes.objects import part, parts
from ebbtide.declaration.catalog import COMPUTE_CLASS
from ebbtide.values.pod_requests import Amounts
from ebbtide_rehearsal.cloud.autoscaling import Expander
from ebbtide_rehearsal.cloud.nodes import gke_price
from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot
from ebbtide_rehearsal.cloud.nodes.names import group
from ebbtide_rehearsal.cloud.nodes.objects import Object
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.scheduling import NodeInfo
from ebbtide_rehearsal.cloud.pools import NodePool


@dataclass(frozen=True, slots=True)
class Option:
    """Possible new nodes of a pool.

    Attributes:
        pool: the pool.
        zone: the zone.
        nodes: number of new nodes.
        pods: pods that would run there.
        free: free capacity of an empty node.
        waste: unused share of the nodes' CPU plus that of their memory.
        existing: number of the pool's nodes in the zone.
    """

    pool: NodePool
    zone: str
    nodes: int
    pods: tuple[Pod, ...]
    free: Amounts
    waste: float
    existing: int


def waste(empty: NodeInfo, used: Sequence[NodeInfo]) -> float:
    """Return the unused share of new nodes (kubernetes/autoscaler, FAQ, expander `least-waste`)."""
    shares = [
        sum((node_info.free.get(name, Decimal(0)) for node_info in used), Decimal(0))
        / (empty.free[name] * len(used))
        for name in ("cpu", "memory")
        if empty.free.get(name) and used
    ]
    return float(sum(shares, Decimal(0)))


def class_rank(pool: NodePool, specification: Object) -> int | None:
    """Return a pool's rank among a ComputeClass's priorities, from 0; None if it must not be used.

    Rules with a `priorityScore` are ordered by it, the highest first, and rules with the same score have the
    same rank (GoogleCloudPlatform/cluster-autoscaler@7d250507, TestCCCScaleUpPriorityScore).
    """
    rules, number = parts(specification, "priorities"), _rule(pool, specification)
    if number is None:
        return len(rules) if specification.get("whenUnsatisfiable") == "ScaleUpAnyway" else None
    score = rules[number].get("priorityScore")
    if score is None:
        return number
    return len({rule["priorityScore"] for rule in rules if rule.get("priorityScore", 0) > score})


def _rule(pool: NodePool, specification: Object) -> int | None:
    """Return the index of the first rule that matches a pool."""
    rules = parts(specification, "priorities")
    return next((number for number, rule in enumerate(rules) if _meets(pool, rule)), None)


def _meets(pool: NodePool, rule: Object) -> bool:
    if rule.get("nodepools"):
        return pool.name in rule["nodepools"]
    gpu = part(rule, "gpu")
    required: dict[str, tuple[Any, Any]] = {
        "machineType": (rule.get("machineType"), pool.machine),
        "machineFamily": (rule.get("machineFamily"), pool.machine.split("-")[0]),
        "gpu type": (gpu.get("type"), pool.accelerator and pool.accelerator[0]),
        "gpu count": (gpu.get("count"), pool.accelerator and pool.accelerator[1]),
    }
    return (
        all(expected in (None, has) for expected, has in required.values())
        and bool(rule.get("spot")) == (pool.capacity == "spot")
        and bool(part(rule, "flexStart").get("enabled")) == (pool.capacity == "flex-start")
    )


def aks_priority(pool: NodePool, zone: str, priorities: str) -> int | None:
    """Return a pool's priority for AKS's autoscaler, the highest wins; None for no priority.

    Args:
        pool: the pool.
        zone: the zone.
        priorities: the key `priorities` of the ConfigMap `cluster-autoscaler-priority-expander`: patterns by
            priority (kubernetes/autoscaler, expander/priority/readme.md).
    """
    table: Mapping[int, Sequence[str]] = yaml.safe_load(priorities) or {}
    name = group(pool, zone)
    matching = [
        number for number, patterns in table.items() if any(re.search(pattern, name) for pattern in patterns)
    ]
    return max(matching, default=None)


def cooldown_groups(
    pool: NodePool, zones: Collection[str], snapshot: ClusterSnapshot, *, regional: bool
) -> list[str]:
    """Return the node groups that a refusal suspends for the cooldown of a ComputeClass rule.

    Rules of node pools have no cooldown, nor has the last rule, including `ScaleUpAnyway`
    (GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/backoff/npc_backoff.go).

    Args:
        pool: the refused pool.
        zones: the refused zones.
        snapshot: snapshot of the cluster.
        regional: True if the refusal applies to all zones, such as that of a quota.
    """
    name = pool.labels.get(COMPUTE_CLASS, "")
    specification = snapshot.classes.get(name, {})
    rules = parts(specification, "priorities")
    number = _rule(pool, specification)
    last = len(rules) - (specification.get("whenUnsatisfiable") != "ScaleUpAnyway")
    if number is None or number >= last or rules[number].get("nodepools"):
        return []
    return [
        group(other, zone)
        for other in snapshot.pools
        if other.labels.get(COMPUTE_CLASS) == name and _rule(other, specification) == number
        for zone in other.zones
        if regional or zone in zones
    ]


def best(
    options: Sequence[Option], snapshot: ClusterSnapshot, specification: Object | None = None
) -> Option | None:
    """Return the option that the cloud's autoscaler chooses; None if there is none.

    GKE chooses by its expander's score, unless a ComputeClass decides. AKS uses its expander, and a random
    choice if several options are left (kubernetes/autoscaler, FAQ, "What are Expanders?", 2026). Among
    otherwise equal options the zone with fewer nodes wins.

    Args:
        options: node groups that can grow.
        snapshot: snapshot of the cluster.
        specification: specification of the ComputeClass that the pods select; None for none.
    """
    ranked: list[tuple[tuple[float, ...], Option]] = []
    for option in options:
        rank = 0 if specification is None else class_rank(option.pool, specification)
        if rank is None:
            continue
        ranked.append(((rank, *_cost(option, snapshot), option.existing), option))
    return min(ranked, key=lambda entry: (entry[0], entry[1].pool.name, entry[1].zone))[1] if ranked else None


def _cost(option: Option, snapshot: ClusterSnapshot) -> tuple[float, ...]:
    match option.pool.cloud:
        case "gke":
            return (gke_price.score(option.pool, option.nodes, option.pods, option.free, snapshot),)
        case "aks":
            return (*_preference(option, snapshot.autoscaling.expander, snapshot.priorities), _chance(option))


def _preference(option: Option, expander: Expander, priorities: str) -> tuple[float, ...]:
    """Return the score of an option for AKS's expander, the smallest wins; all are of the same length."""
    match expander:
        case "random":
            return ()
        case "most-pods":
            return (-len(option.pods),)
        case "least-waste":
            return (option.waste,)
        case "priority":
            priority = aks_priority(option.pool, option.zone, priorities)
            return (0, -priority) if priority is not None else (1, 0)
        case _:
            assert_never(expander)


def _chance(option: Option) -> float:
    """Return a pseudo-random number, the same for all zones of a pool."""
    thrown = hashlib.sha256(f"{option.pool.name} {option.pods[0].uid}".encode()).digest()
    return int.from_bytes(thrown[:8])
