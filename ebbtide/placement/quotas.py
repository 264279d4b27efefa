"""Quotas of a cluster's pools: a flavor for each pool, or for all pools of a queue with fallback."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebbtide.declaration.catalog import CLOUD_SPECS, resource_name
from ebbtide.declaration.model import Cluster, Queue, Queued, Taint
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.placement.derive import toleration
from ebbtide.placement.profile import NodeTaint, Toleration
from ebbtide.values import quantities

CPU = "cpu"
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Offer:
    """Capacity of a pool.

    Attributes:
        pool: its name.
        node: resources of a node: `cpu` in millicores, `memory` in MiB, accelerators by resource name.
        nodes: the maximum node count.
    """

    pool: str
    node: Mapping[str, int]
    nodes: int


@dataclass(frozen=True, slots=True)
class Flavor:
    """The flavor of a pool, or of alternative pools.

    Attributes:
        name: the pool's name; for several pools, the queue's name with the suffix `.pools`, which no pool
            name has.
        labels: labels that only these nodes have.
        taints: taints of the nodes.
        tolerations: a toleration for each taint.
        offers: the resources of each pool, preferred pool first.
        queued: whether the pool uses queued provisioning.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...]
    tolerations: tuple[Toleration, ...]
    offers: tuple[Offer, ...]
    queued: bool

    def offer(self, nodes: Mapping[str, int]) -> dict[str, int]:
        """Return the capacity of numbers of nodes, given by pool name."""
        total: dict[str, int] = {}
        for offer in self.offers:
            for resource, amount in offer.node.items():
                total[resource] = total.get(resource, 0) + amount * nodes.get(offer.pool, 0)
        return total

    @property
    def node(self) -> dict[str, int]:
        """The maximum of each resource on a node of any of the pools."""
        largest: dict[str, int] = {}
        for offer in self.offers:
            for resource, amount in offer.node.items():
                largest[resource] = max(amount, largest.get(resource, 0))
        return largest

    @property
    def accelerator(self) -> str:
        """Name of the accelerators' resource; empty if there are none."""
        return next((resource for resource in self.node if resource not in (CPU, MEMORY)), "")


def _offer(pool: ResolvedPool) -> Offer:
    """Return the capacity of a pool at its maximum: a larger quota would admit workloads that wait
    forever for nodes (kueue#5129), a smaller one would leave nodes unused."""
    offer = pool.offered
    node = {CPU: int(offer.cpu_m) if offer else 0, MEMORY: int(offer.memory_mib) if offer else 0}
    if pool.accelerator is not None:
        node[resource_name(pool.accelerator.type)] = pool.requestable
    return Offer(pool.name, node, pool.max_nodes)


def _flavor(
    name: str, labels: Mapping[str, str], taints: Iterable[Taint], pools: Sequence[ResolvedPool]
) -> Flavor:
    unique = tuple(dict.fromkeys(taints))
    return Flavor(
        name=name,
        labels=labels,
        taints=tuple(NodeTaint(taint.key, taint.value, taint.effect.value) for taint in unique),
        tolerations=tuple(toleration(taint) for taint in unique),
        offers=tuple(_offer(pool) for pool in pools),
        queued=any(isinstance(pool.capacity, Queued) for pool in pools),
    )


def flavor(pool: ResolvedPool) -> Flavor:
    """Return the flavor of a pool.

    Kueue compares a pod's node selector with the label keys of a flavor, and ignores every other key (Kueue
    0.19.2, scheduler/flavorassigner, flavorSelector). The flavor therefore has the cloud's pool label: a pod
    that selects another pool with it is not admitted to this one. Flavors without a topology can be changed
    in place, and their admitted workloads stay admitted (resourceflavor_types.go;
    util/equality/podset.go).
    """
    derived = pool.labels_and_taints
    labels = {key: derived.all_labels[key] for key in (*derived.distinguishing, derived.pool_label) if key}
    return _flavor(pool.name, labels, derived.all_taints, (pool,))


def fallback_flavor(queue: Queue, cluster: Cluster) -> Flavor:
    """Return the only flavor of a queue with fallback, over its pools: their shared label selects
    all of them, and admitted pods tolerate the taints of all of them, so that the autoscaler can choose."""
    by_name = {pool.name: pool for pool in cluster.resolved_pools}
    pools = [by_name[name] for name in queue.pools]
    taints = (taint for pool in pools for taint in pool.labels_and_taints.all_taints)
    labels = {CLOUD_SPECS[cluster.site.cloud].fallback_key: queue.name}
    return _flavor(f"{queue.name}.pools", labels, taints, pools)


def covered(flavors: Iterable[Flavor]) -> tuple[str, ...]:
    """Return the resources of any of the flavors, CPU and memory first: Kueue requires all of them for each
    flavor of a group, in one order."""
    resources: dict[str, None] = {CPU: None, MEMORY: None}
    for item in flavors:
        resources |= dict.fromkeys(item.node)
    return tuple(resources)


def quantity(resource: str, amount: int) -> str:
    """Format an amount in Kubernetes' canonical form, so that declared and actual values are equal."""
    match resource:
        case "cpu":
            return quantities.cpu(amount)
        case "memory":
            return quantities.memory(amount)
        case _:
            return str(amount)


def largest_node(flavors: Iterable[Flavor]) -> dict[str, Any]:
    """Return the maximum CPU and memory of any one node of the flavors, as quantities."""
    known = tuple(flavors)
    return {
        resource: quantity(resource, max((item.node[resource] for item in known), default=0))
        for resource in (CPU, MEMORY)
    }
