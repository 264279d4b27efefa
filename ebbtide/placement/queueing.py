"""Admission of work to the pools: cohorts that own the quota, cluster queues that borrow it, and local
queues. `ebbtide.placement.kueue` writes Kueue's objects."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ebbtide.model import Cluster, Queue, Team
from ebbtide.model.queues import queues_of
from ebbtide.model.tenants import local_queue_tenants, tenants_of
from ebbtide.placement.quotas import Flavor, fallback_flavor, flavor

FLAVORS_IN_A_GROUP = 64
"""Kueue's limit for the flavors of one resource group (its CRDs, 0.19.2)."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """Quota that queues share.

    Attributes:
        name: its name.
        parent: the cohort above it, which borrows what it owns; empty for one at the top.
        owned: its flavors, with the nodes of each of their pools that no team is guaranteed.
    """

    name: str
    parent: str
    owned: tuple[tuple[Flavor, Mapping[str, int]], ...]


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A queue as one team has it, or namespaces without a team share it.

    Attributes:
        name: its name.
        cohort: where it borrows.
        flavors: in order of preference, with the nodes of each of their pools that are its own.
        namespaces: where its work comes from.
        weight: its share of what is borrowed.
        checks: names of the admission checks, with the flavors that each is for.
    """

    name: str
    cohort: str
    flavors: tuple[tuple[Flavor, Mapping[str, int]], ...]
    namespaces: tuple[str, ...]
    weight: int
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class LocalQueueObject:
    """A queue's name in a namespace."""

    name: str
    namespace: str
    cluster_queue: str


@dataclass(frozen=True, slots=True)
class Check:
    """An admission check that asks the cloud for nodes before work is admitted.

    Attributes:
        name: its name.
        provisioning_class: who answers.
        resource: the resource whose pods the request is for; empty for all pods.
        follow: node label by which pods find the nodes of their own request, with the detail that holds its
            value.
    """

    name: str
    provisioning_class: str
    resource: str
    follow: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Queueing:
    """All of it, in the order in which it is made."""

    flavors: tuple[Flavor, ...] = ()
    checks: tuple[Check, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    cluster_queues: tuple[ClusterQueue, ...] = ()
    local_queues: tuple[LocalQueueObject, ...] = ()

    def flavors_in(self, namespace: str) -> tuple[Flavor, ...]:
        """Every flavor that work of a namespace may have."""
        flavors = {
            item.name: item
            for queue in self.cluster_queues
            if namespace in queue.namespaces
            for item, _ in queue.flavors
        }
        return tuple(flavors.values())


def cohort_name(cluster: Cluster) -> str:
    """Return the cluster's name as a name of an object: AKS accepts characters that Kubernetes does not."""
    return re.sub(r"[^a-z0-9]+", "-", cluster.name.lower()).strip("-")


def _guaranteed(tenants: Sequence[Team], pool: str) -> int:
    return sum(tenant.guarantee.get(pool, 0) for tenant in tenants)


def _cohorts(name: str, flavors: Sequence[Flavor], tenants: Sequence[Team]) -> tuple[Cohort, ...]:
    """Return the cohort that owns every flavor; if they are too many for one group, child cohorts own them,
    from which its queues borrow."""
    owned = tuple(
        (item, {offer.pool: max(0, offer.nodes - _guaranteed(tenants, offer.pool)) for offer in item.offers})
        for item in flavors
    )
    if len(owned) <= FLAVORS_IN_A_GROUP:
        return (Cohort(name, "", owned),)
    shelves = [owned[at : at + FLAVORS_IN_A_GROUP] for at in range(0, len(owned), FLAVORS_IN_A_GROUP)]
    return (
        Cohort(name, "", ()),
        *(Cohort(f"{name}.{index}", name, shelf) for index, shelf in enumerate(shelves, start=1)),
    )


_GKE_QUEUED = "queued-provisioning.gke.io"
_GKE_FOLLOW = (("autoscaling.gke.io/provisioning-request", "ResizeRequestName"),)


def _check_name(item: Flavor) -> str:
    return f"queued-{item.accelerator.partition('.')[0] or 'cpu'}"


def _checks(flavors: Sequence[Flavor]) -> tuple[Check, ...]:
    """Return one check for each accelerator of queued pools. Nodes are requested for the pods with that
    accelerator alone: a launcher without it, on another pool, is not part of the request."""
    return tuple(
        {
            _check_name(item): Check(_check_name(item), _GKE_QUEUED, item.accelerator, _GKE_FOLLOW)
            for item in flavors
            if item.queued
        }.values()
    )


_TOGETHER = Check("together", "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "", ())
"""AKS' way of asking for all nodes of a job at once (azure-aks-docs, configure-kueue-with-cluster-autoscaler,
2026). What it brings is held for ten minutes for that job."""


def _checks_of(queue: Queue, flavors: Sequence[Flavor]) -> dict[str, tuple[str, ...]]:
    if queue.together:
        return {_TOGETHER.name: tuple(item.name for item in flavors)}
    checks: dict[str, tuple[str, ...]] = {}
    for item in flavors:
        if item.queued:
            checks[_check_name(item)] = (*checks.get(_check_name(item), ()), item.name)
    return checks


def _guarantees(tenant: Team, queues: Sequence[Queue]) -> dict[str, dict[str, int]]:
    """Return a team's guaranteed nodes by queue and pool: a pool's belong to the first of its queues that has
    it."""
    remaining = dict(tenant.guarantee)
    return {
        queue.name: {pool: remaining.pop(pool) for pool in queue.pools if pool in remaining}
        for queue in queues
    }


def _flavors_of(queue: Queue, cluster: Cluster) -> tuple[Flavor, ...]:
    """Return a queue's flavors, preferred first; a single one if its pools are alternatives."""
    if queue.fallback:
        return (fallback_flavor(queue, cluster),)
    by_name = {pool.name: pool for pool in cluster.pools}
    return tuple(flavor(by_name[name], cluster) for name in queue.pools)


def _in_order(flavors: Iterable[Flavor], cluster: Cluster) -> tuple[Flavor, ...]:
    """Each flavor once, in the order in which the pools are declared."""
    ranks = {pool.name: number for number, pool in enumerate(cluster.pools)}
    once = {item.name: item for item in flavors}
    return tuple(sorted(once.values(), key=lambda item: min(ranks[offer.pool] for offer in item.offers)))


def queueing(cluster: Cluster) -> Queueing:
    """Derive the admission of work on a complete cluster; empty without Kueue.

    A flavor's nodes belong to one cohort, once, however many queues use them; queues own only what
    their team is guaranteed, which is subtracted from the cohort's, and borrow the rest. Admitted work never
    exceeds the pool, and unused quota of one team is free for the others (run on Kueue 0.19.2).
    """
    queues = queues_of(cluster)
    if not cluster.has_kueue or not queues:
        return Queueing()
    tenants = tenants_of(cluster)
    by_queue = {queue.name: _flavors_of(queue, cluster) for queue in queues}
    flavors = _in_order((item for group in by_queue.values() for item in group), cluster)
    shared = {tenant.name for tenant in local_queue_tenants(cluster)}
    cluster_queues: dict[str, ClusterQueue] = {}
    local_queues: list[LocalQueueObject] = []
    for tenant in tenants:
        used = [queue for queue in queues if tenant.queues_used(queue.name)]
        guaranteed = _guarantees(tenant, used)
        for queue in used:
            is_shared = not cluster.teams or tenant.name in shared
            name = queue.name if is_shared else f"{tenant.name}.{queue.name}"
            mine, own = by_queue[queue.name], guaranteed[queue.name]
            before = cluster_queues[name].namespaces if name in cluster_queues else ()
            cluster_queues[name] = ClusterQueue(
                name=name,
                cohort=cohort_name(cluster),
                flavors=tuple(
                    (item, {offer.pool: own.get(offer.pool, 0) for offer in item.offers}) for item in mine
                ),
                namespaces=(*before, tenant.namespace_name),
                weight=tenant.weight,
                checks=_checks_of(queue, mine),
            )
            local_queues += [
                LocalQueueObject(use.as_ or use.queue, tenant.namespace_name, name)
                for use in tenant.queues_used(queue.name)
            ]
    return Queueing(
        flavors=flavors,
        checks=(
            *_checks(flavors),
            *((_TOGETHER,) if any(queue.together for queue in queues) else ()),
        ),
        cohorts=_cohorts(cohort_name(cluster), flavors, tenants),
        cluster_queues=tuple(cluster_queues.values()),
        local_queues=tuple(local_queues),
    )
