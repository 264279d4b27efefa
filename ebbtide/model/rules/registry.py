"""Table of all rules, and their execution."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ebbtide.model.cluster import Cluster
from ebbtide.model.faults import Fault
from ebbtide.model.rules import (
    accelerators,
    addons,
    admission,
    aks_pools,
    aks_versions,
    choices,
    drivers,
    existing,
    fallback,
    free_capacity,
    gke_capacity,
    gke_versions,
    keys,
    kubernetes,
    local_disks,
    local_queues,
    location,
    machines,
    maintenance,
    members,
    names,
    network,
    nodes,
    offerings,
    one_cloud,
    overrides,
    preloading,
    registries,
    reservations,
    retirements,
    shares,
    sharing,
    storage,
    system_pool,
    tenancy,
    tpus,
)
from ebbtide.model.rules.rule import ClusterRule, PoolIn, PoolRule, Severity, pools_of

RULES: tuple[PoolRule | ClusterRule, ...] = (
    *names.RULES,
    *location.RULES,
    *existing.RULES,
    *network.RULES,
    *keys.RULES,
    *maintenance.RULES,
    *system_pool.RULES,
    *machines.RULES,
    *retirements.RULES,
    *offerings.RULES,
    *accelerators.RULES,
    *sharing.RULES,
    *tpus.RULES,
    *one_cloud.RULES,
    *choices.RULES,
    *local_disks.RULES,
    *preloading.RULES,
    *gke_capacity.RULES,
    *reservations.RULES,
    *gke_versions.RULES,
    *aks_pools.RULES,
    *aks_versions.RULES,
    *nodes.RULES,
    *kubernetes.RULES,
    *tenancy.RULES,
    *local_queues.RULES,
    *members.RULES,
    *admission.RULES,
    *drivers.RULES,
    *free_capacity.RULES,
    *shares.RULES,
    *fallback.RULES,
    *storage.RULES,
    *registries.RULES,
    *addons.RULES,
    *overrides.RULES,
)


def _named(rule: str, faults: Iterable[Fault]) -> Iterator[Fault]:
    return (replace(fault, rule=rule) for fault in faults)


def pool_faults(pool: PoolIn, severity: Severity) -> Iterator[Fault]:
    """Yield the faults of a pool for all rules of its cloud with that severity."""
    for rule in RULES:
        if isinstance(rule, PoolRule) and rule.severity is severity and rule.cloud in (None, pool.site.cloud):
            yield from _named(rule.id, rule.check(pool))


def cluster_faults(cluster: Cluster, severity: Severity) -> Iterator[Fault]:
    """Yield the faults of a declaration and its pools for all rules of its cloud with that severity."""
    cloud = cluster.site.cloud
    for rule in RULES:
        if isinstance(rule, ClusterRule) and rule.severity is severity and rule.cloud in (None, cloud):
            yield from _named(rule.id, rule.check(cluster))
    for pool in pools_of(cluster):
        yield from pool_faults(pool, severity)
