"""Admission of workloads to the pools: flavors with the nodes of the pools, cohorts that own these as quota,
cluster queues that borrow it, and local queues. `ebbtide.placement.queue_objects` builds Kueue's objects."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ebbtide.declaration.catalog.accelerators import resource_name
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.model.capacity import Queued
from ebbtide.declaration.model.cluster import FLAVORS_IN_A_GROUP, Cluster
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.tenancy import Preemption, Queue, Team
from ebbtide.placement.derive import toleration
from ebbtide.placement.profile import NodeTaint, Toleration
from ebbtide.values import quantities

CPU = "cpu"
MEMORY = "memory"

_GKE_QUEUED = "queued-provisioning.gke.io"
_GKE_FOLLOW = (("autoscaling.gke.io/provisioning-request", "ResizeRequestName"),)


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
        name: the pool's name, or its `resourceFlavor`; for several pools, the queue's name with the suffix
            `.pools`, which no pool name has.
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
    in place, and their admitted workloads stay admitted (Kueue 0.19.2, resourceflavor_types.go;
    util/equality/podset.go).
    """
    derived = pool.labels_and_taints
    labels = {key: derived.all_labels[key] for key in (*derived.distinguishing, derived.pool_label) if key}
    return _flavor(pool.flavor_name, labels, derived.all_taints, (pool,))


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


@dataclass(frozen=True, slots=True)
class Cohort:
    """Quota that cluster queues share.

    Attributes:
        parent: the parent cohort, which borrows its quota; empty at the top.
        owned: its flavors, with the nodes of each pool that are not guaranteed to a team.
    """

    name: str
    parent: str
    owned: tuple[tuple[Flavor, Mapping[str, int]], ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Preemption and strategy of a cluster queue.

    By default, a team without guarantees preempts no work of equal priority. `Never` would end preemption by
    priority within the queue as well, which borrows its quota (Kueue 0.19.2, flavorassigner,
    canPreemptWhileBorrowing).

    Attributes:
        within_cluster_queue: whose work of the queue its waiting work preempts.
        reclaim_within_cohort: whose borrowed quota its waiting work preempts.
    """

    within_cluster_queue: str = "LowerPriority"
    reclaim_within_cohort: str = "LowerPriority"
    strategy: str = "BestEffortFIFO"


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A queue for one team, or shared by namespaces without a team.

    Attributes:
        cohort: the cohort that it borrows from.
        flavors: flavors in order of preference, with the guaranteed nodes of each pool.
        weight: its weight in fair sharing of borrowed quota.
        order: its preemption and queueing strategy.
        borrowing_limit: limit of the nodes that it borrows, for the pools that have one.
        lending_limit: limit of the guaranteed nodes that it lends, for the pools that have one.
        namespaces: namespaces of its workloads.
        checks: names of the admission checks, with the flavors of each.
    """

    name: str
    cohort: str
    flavors: tuple[tuple[Flavor, Mapping[str, int]], ...]
    weight: int
    order: Order = Order()
    borrowing_limit: Mapping[str, int] = field(default_factory=dict[str, int])
    lending_limit: Mapping[str, int] = field(default_factory=dict[str, int])
    namespaces: tuple[str, ...] = ()
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class LocalQueueObject:
    """A local queue: the queue's name in a namespace."""

    name: str
    namespace: str
    cluster_queue: str


@dataclass(frozen=True, slots=True)
class Check:
    """An admission check that requests nodes from the cloud before a workload is admitted.

    Attributes:
        resource: the resource whose pods the request is for; empty for all pods.
        follow: node label with which pods select the nodes of their request, with the detail that has its
            value.
    """

    name: str
    provisioning_class: str
    resource: str
    follow: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Queueing:
    """All queueing objects, in the order of their creation."""

    flavors: tuple[Flavor, ...] = ()
    checks: tuple[Check, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    cluster_queues: tuple[ClusterQueue, ...] = ()
    local_queues: tuple[LocalQueueObject, ...] = ()

    def flavors_by_namespace(self) -> dict[str, tuple[Flavor, ...]]:
        """Return the flavors that workloads may use in each namespace."""
        flavors: dict[str, dict[str, Flavor]] = {}
        for queue in self.cluster_queues:
            for namespace in queue.namespaces:
                named = {item.name: item for item, _ in queue.flavors}
                flavors[namespace] = flavors.get(namespace, {}) | named
        return {namespace: tuple(items.values()) for namespace, items in flavors.items()}


def object_name(cluster: Cluster) -> str:
    """Return the cluster's name as an object name: AKS accepts characters that Kubernetes does not."""
    return re.sub(r"[^a-z0-9]+", "-", cluster.name.lower()).strip("-")


def cohort_name(cluster: Cluster) -> str:
    """Return the name of the queues' cohort, by default the cluster's."""
    return cluster.cohort.name or object_name(cluster)


def _cohorts(name: str, flavors: Sequence[Flavor], tenants: Sequence[Team]) -> tuple[Cohort, ...]:
    """Return the cohort that owns every flavor; if there are too many for one group, child cohorts own them,
    and the cohort's queues borrow from these."""
    guaranteed: Counter[str] = Counter()
    for tenant in tenants:
        guaranteed.update(tenant.guarantee)
    owned = tuple(
        (item, {offer.pool: max(0, offer.nodes - guaranteed[offer.pool]) for offer in item.offers})
        for item in flavors
    )
    if len(owned) <= FLAVORS_IN_A_GROUP:
        return (Cohort(name, "", owned),)
    shelves = [owned[at : at + FLAVORS_IN_A_GROUP] for at in range(0, len(owned), FLAVORS_IN_A_GROUP)]
    return (
        Cohort(name, "", ()),
        *(Cohort(f"{name}.{index}", name, shelf) for index, shelf in enumerate(shelves, start=1)),
    )


def _check_name(item: Flavor) -> str:
    return f"queued-{item.accelerator.partition('.')[0] or 'cpu'}"


def _checks(flavors: Sequence[Flavor]) -> tuple[Check, ...]:
    """Return one check for each accelerator of queued pools. Nodes are requested only for the pods with that
    accelerator: a launcher without it, on another pool, is not part of the request."""
    return tuple(
        {
            _check_name(item): Check(_check_name(item), _GKE_QUEUED, item.accelerator, _GKE_FOLLOW)
            for item in flavors
            if item.queued
        }.values()
    )


_TOGETHER = Check("together", "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "", ())
"""AKS's request for all nodes of a job at once (azure-aks-docs, configure-kueue-with-cluster-autoscaler,
2026). The nodes are reserved for that job for ten minutes."""


def _checks_of(queue: Queue, flavors: Sequence[Flavor]) -> dict[str, tuple[str, ...]]:
    if queue.together:
        return {_TOGETHER.name: tuple(item.name for item in flavors)}
    checks: dict[str, tuple[str, ...]] = {}
    for item in flavors:
        if item.queued:
            checks[_check_name(item)] = (*checks.get(_check_name(item), ()), item.name)
    return checks


def _guarantees(tenant: Team, queues: Sequence[Queue]) -> dict[str, dict[str, int]]:
    """Return a team's guaranteed nodes by queue and pool: a pool's guarantee belongs to the team's first
    queue with that pool."""
    remaining = dict(tenant.guarantee)
    return {
        queue.name: {pool: remaining.pop(pool) for pool in queue.pools if pool in remaining}
        for queue in queues
    }


def _order(queue: Queue, guaranteed: Mapping[str, int]) -> Order:
    """Return a resolved queue's order; a guarantee is reclaimed from any work by default."""
    declared, default = queue.preemption or Preemption(), Order()
    reclaim = "Any" if any(guaranteed.values()) else default.reclaim_within_cohort
    return Order(
        declared.within_cluster_queue or default.within_cluster_queue,
        declared.reclaim_within_cohort or reclaim,
        queue.queueing_strategy or default.strategy,
    )


def _flavors_of(queue: Queue, pools: Mapping[str, ResolvedPool], cluster: Cluster) -> tuple[Flavor, ...]:
    """Return a queue's flavors in order of preference; a single one if its pools are alternatives."""
    if queue.fallback:
        return (fallback_flavor(queue, cluster),)
    return tuple(flavor(pools[name]) for name in queue.pools)


def _in_order(flavors: Iterable[Flavor], cluster: Cluster) -> tuple[Flavor, ...]:
    """Return the distinct flavors, in the order in which the pools are declared."""
    ranks = {pool.name: number for number, pool in enumerate(cluster.pools)}
    once = {item.name: item for item in flavors}
    return tuple(sorted(once.values(), key=lambda item: min(ranks[offer.pool] for offer in item.offers)))


def queueing(cluster: Cluster) -> Queueing:
    """Derive the admission of workloads on a complete cluster; empty without Kueue.

    A flavor's nodes belong to one cohort, once, regardless of the number of queues that use them; queues own
    only their team's guarantee, which is subtracted from the cohort's nodes, and borrow the rest. Admitted
    workloads never exceed the pool, and unused quota of one team is available to the others (tested).
    """
    queues = cluster.resolved_queues
    if not cluster.has_kueue or not queues:
        return Queueing()
    cohort, tenants = cohort_name(cluster), cluster.tenants
    pools = {pool.name: pool for pool in cluster.resolved_pools}
    by_queue = {queue.name: _flavors_of(queue, pools, cluster) for queue in queues}
    flavors = _in_order((item for group in by_queue.values() for item in group), cluster)
    shared = {local.namespace for queue in queues for local in queue.local_queues}
    cluster_queues: dict[str, ClusterQueue] = {}
    namespaces: dict[str, list[str]] = {}
    local_queues: list[LocalQueueObject] = []
    for tenant in tenants:
        is_shared = not cluster.teams or tenant.name in shared
        used = [
            (queue, uses, queue.name if is_shared else tenant.cluster_queue(queue.name))
            for queue in queues
            if (uses := tenant.queues_used(queue.name))
        ]
        guaranteed = _guarantees(tenant, [queue for queue, _, _ in used])
        for queue, uses, name in used:
            mine, own = by_queue[queue.name], guaranteed[queue.name]
            namespaces.setdefault(name, []).append(tenant.namespace_name)
            cluster_queues[name] = ClusterQueue(
                name=name,
                cohort=cohort,
                flavors=tuple(
                    (item, {offer.pool: own.get(offer.pool, 0) for offer in item.offers}) for item in mine
                ),
                weight=tenant.weight,
                order=_order(queue, own),
                borrowing_limit={**queue.borrowing_limit, **tenant.borrowing_limit},
                lending_limit={pool: nodes for pool, nodes in tenant.lending_limit.items() if pool in own},
                checks=_checks_of(queue, mine),
            )
            local_queues += [
                LocalQueueObject(use.as_ or use.queue, tenant.namespace_name, name) for use in uses
            ]
    return Queueing(
        flavors=flavors,
        checks=(
            *_checks(flavors),
            *((_TOGETHER,) if any(queue.together for queue in queues) else ()),
        ),
        cohorts=_cohorts(cohort, flavors, tenants),
        cluster_queues=tuple(
            replace(queue, namespaces=tuple(namespaces[name])) for name, queue in cluster_queues.items()
        ),
        local_queues=tuple(local_queues),
    )
