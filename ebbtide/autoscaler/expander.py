"""Choice between node pools: the expanders of GKE and AKS, and ComputeClasses.

GKE compares the price of the nodes with that of the pods, weighted by node size
(GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/expander/gkeprice; prices of requests:
kubernetes/autoscaler@1959f5f6, cloudprovider/gce/gce_price_info.go and gce_price_model.go). Omitted:
reservations, and the factor 3 for large preemptible machines, which an unpublished setting enables. Ephemeral
storage counts neither for pods nor for nodes.
"""

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import yaml

from ebbtide.autoscaler.nodes import Expander, NodePool, billed_count, capacity, labels, node_group
from ebbtide.autoscaler.scheduling import NodeInfo, Object, Pod
from ebbtide.autoscaler.snapshot import ClusterSnapshot
from ebbtide.clients.kubernetes.objects import part, parts
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS
from ebbtide.values.pod_requests import Amounts, amounts

_GIB: Final = 2**30
_CPU_PRICE: Final = 0.033174
_GIB_PRICE: Final = 0.004446
_GPU_PRICE: Final = 0.7
"""USD per hour."""
_GPU: Final = "nvidia.com/gpu"

_STABILIZER: Final = 0.5 * _CPU_PRICE + 500 / 1024 * _GIB_PRICE
"""Price of half a CPU and 500 MiB, which is added to both sides of the ratio."""

_UNFITNESS: Final = 1.5 * 1.1
_ACCELERATOR_UNFITNESS: Final = 1000.0
_REUSABLE: Final = 0.5
_PENDING_WEIGHT: Final = 2
_CPUS_PER_BYTE: Final = 2 / (13 * _GIB)
_PREFERRED: Final = ((3, 1), (12, 2), (60, 4), (380, 8), (2300, 16), (18300, 32), (107900, 64))
_LARGEST: Final = 96
_SYSTEM: Final = re.compile(r"\b(cloud\.google\.com|kubernetes\.io|k8s\.io|gke\.io|gke\.networks\.io)/")


@dataclass(frozen=True, slots=True)
class PricedResources:
    """CPUs, and memory in bytes."""

    cpus: float
    memory: float

    @classmethod
    def of(cls, quantities: Amounts) -> "PricedResources":
        """Select CPUs and memory from quantities."""
        return cls(float(quantities.get("cpu", Decimal(0))), float(quantities.get("memory", Decimal(0))))

    @property
    def price(self) -> float:
        """Price, USD per hour."""
        return self.cpus * _CPU_PRICE + self.memory / _GIB * _GIB_PRICE


def score(pool: NodePool, nodes: int, pods: Iterable[Pod], free: Amounts, snapshot: ClusterSnapshot) -> float:
    """Score new nodes for pods; the lowest score wins.

    Args:
        nodes: number of new nodes.
        free: capacity of an empty node for pods.
    """
    helped = list(pods)
    requests = _sum(helped)
    gpus = sum(float(pod.requests.get(_GPU, Decimal(0))) for pod in helped)
    later = PricedResources(0, 0) if pool.accelerator else _reusable(nodes, requests, free, snapshot, pool)
    if pool.hourly is None:
        return math.inf  # no pool is preferred for a price that is unknown
    spent = nodes * pool.hourly + _STABILIZER
    worth = requests.price + gpus * _GPU_PRICE + later.price + _STABILIZER
    return _unfitness(pool, nodes, requests, snapshot) * spent / worth


def _unfitness(pool: NodePool, nodes: int, requests: PricedResources, snapshot: ClusterSnapshot) -> float:
    if pool.accelerator:
        return _ACCELERATOR_UNFITNESS * sum(int(count) for count in pool.accelerators.values())
    preferred = _preferred_cpus(pool, requests, snapshot)
    cpus = PricedResources.of(amounts(capacity(pool))).cpus
    unfitness = _UNFITNESS ** math.log2(max(preferred / cpus, cpus / preferred))
    return (unfitness - 1) * (1 - math.tanh((nodes - 1) / 15)) + 1


def _preferred_cpus(pool: NodePool, requests: PricedResources, snapshot: ClusterSnapshot) -> int:
    """Return the preferred node size, which grows with the pools of the same workload."""
    existing = sum(
        PricedResources.of(amounts(capacity(other))).cpus * billed_count(snapshot.machines, other)
        for other in snapshot.pools
        if _workload(other) == _workload(pool)
    )
    total = math.ceil(max(requests.cpus, requests.memory * _CPUS_PER_BYTE) + existing)
    return next((size for limit, size in _PREFERRED if total <= limit), _LARGEST)


def _reusable(
    nodes: int, requests: PricedResources, empty: Amounts, snapshot: ClusterSnapshot, pool: NodePool
) -> PricedResources:
    """Predict later pods' use of the new nodes, with the current ratio of memory to CPU."""
    names = {
        machine.name
        for machine in snapshot.machines
        if (other := snapshot.pool(machine)) is not None and _workload(other) == _workload(pool)
    }
    used = _sum(pod for pod in snapshot.pods if pod.node in names and not pod.ended)
    memory = used.memory + _PENDING_WEIGHT * requests.memory
    ratio = memory / (used.cpus + _PENDING_WEIGHT * requests.cpus + 0.001)
    free = PricedResources.of(empty)
    unused = PricedResources(nodes * free.cpus - requests.cpus, nodes * free.memory - requests.memory)
    reusable = _crop(ratio, unused)
    reusable = PricedResources(_REUSABLE * reusable.cpus, _REUSABLE * reusable.memory)
    if nodes <= 1:
        return reusable
    share = nodes / (nodes - 1) * 0.5
    if requests.memory > ratio * requests.cpus:
        limit = PricedResources(requests.memory * share / ratio, requests.memory * share)
    else:
        limit = PricedResources(requests.cpus * share, requests.cpus * share * ratio)
    return PricedResources(min(reusable.cpus, limit.cpus), min(reusable.memory, limit.memory))


def _crop(ratio: float, unused: PricedResources) -> PricedResources:
    """Reduce CPU or memory to match a ratio of memory to CPU."""
    if unused.memory > ratio * unused.cpus:
        return PricedResources(unused.cpus, ratio * unused.cpus)
    return PricedResources(unused.memory / ratio, unused.memory)


def _sum(pods: Iterable[Pod]) -> PricedResources:
    """Add up requests, each at least 5 millicores and 5 MiB."""
    requests = [PricedResources.of(pod.requests) for pod in pods]
    return PricedResources(
        sum(max(request.cpus, 0.005) for request in requests),
        sum(max(request.memory, 5 * 2**20) for request in requests),
    )


def _workload(pool: NodePool) -> frozenset[tuple[str, str, str]]:
    """Return the taints that dedicate a pool to a workload: those whose key is also a label or a resource
    (ibid., pkg/podrequirements/dedicated_workload.go)."""
    own = labels(pool, pool.zones[0], "")
    return frozenset(
        (taint.effect, taint.key, taint.value)
        for taint in pool.taints
        if taint.effect in ("NoSchedule", "NoExecute")
        and (taint.key == COMPUTE_CLASS or not _SYSTEM.search(taint.key))
        and (own.get(taint.key) == taint.value or taint.key in pool.accelerators)
    )


@dataclass(frozen=True, slots=True)
class Option:
    """Possible new nodes of a pool.

    Attributes:
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
        priorities: the key `priorities` of the ConfigMap `cluster-autoscaler-priority-expander`: patterns by
            priority (kubernetes/autoscaler, expander/priority/readme.md).
    """
    table: Mapping[int, Sequence[str]] = yaml.safe_load(priorities) or {}
    name = node_group(pool, zone)
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
        node_group(other, zone)
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
            return (score(option.pool, option.nodes, option.pods, option.free, snapshot),)
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


def _chance(option: Option) -> float:
    """Return a pseudo-random number, the same for all zones of a pool."""
    thrown = hashlib.sha256(f"{option.pool.name} {option.pods[0].uid}".encode()).digest()
    return int.from_bytes(thrown[:8])
