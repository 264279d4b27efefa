"""GKE's choice between node pools: price of the nodes relative to that of the pods, weighted by node size
(GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/expander/gkeprice; prices of requests:
kubernetes/autoscaler@1959f5f6, cloudprovider/gce/gce_price_info.go and gce_price_model.go).

Omitted: reservations, and the factor 3 for large preemptible machines, which an unpublished setting enables.
Ephemeral storage counts neither for pods nor for nodes.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from ebbtide.declaration.catalog import COMPUTE_CLASS
from ebbtide.values.pod_requests import Amounts, amounts
from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot
from ebbtide_rehearsal.cloud.nodes.machines import billed_count
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.templates import capacity, labels
from ebbtide_rehearsal.cloud.pools import NodePool

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
        pool: the pool.
        nodes: number of new nodes.
        pods: pods for the nodes.
        free: capacity of an empty node for pods.
        snapshot: snapshot of the cluster.
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
