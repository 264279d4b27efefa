"""Table of all rules, and their execution."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import ModuleType

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules import (
    accelerators,
    access,
    addons,
    capacity,
    cluster,
    gpu_direct,
    location,
    machines,
    names,
    network,
    nodes,
    overrides,
    own_machines,
    queues,
    reservations,
    resources,
    storage,
    system_pool,
    teams,
)
from ebbtide.declaration.model.rules.rule import ClusterRule, PoolIn, PoolRule, Severity, pools_of
from ebbtide.values.cloud_kind import CloudKind

_MODULES = (
    names,
    location,
    cluster,
    network,
    access,
    system_pool,
    machines,
    own_machines,
    accelerators,
    gpu_direct,
    capacity,
    reservations,
    queues,
    teams,
    nodes,
    storage,
    addons,
    overrides,
    resources,
)
"""The modules with rules, in the order of the documentation."""


def _rules_of(module: ModuleType) -> Iterator[PoolRule | ClusterRule]:
    """Yield the rules of a module: first those of its table of rows, if it has one."""
    yield from getattr(module, "RULES", ())
    yield from (value for value in vars(module).values() if isinstance(value, PoolRule | ClusterRule))


RULES = tuple(rule for module in _MODULES for rule in _rules_of(module))


@cache
def _pool_rules(cloud: CloudKind, severity: Severity) -> tuple[PoolRule, ...]:
    return tuple(
        rule
        for rule in RULES
        if isinstance(rule, PoolRule) and rule.severity is severity and rule.cloud in (None, cloud)
    )


def pool_faults(pool: PoolIn, severity: Severity) -> Iterator[Fault]:
    """Yield the faults of a pool for all rules of its cloud with that severity."""
    for rule in _pool_rules(pool.site.cloud, severity):
        for fault in rule.check(pool):
            yield replace(fault, rule=rule.id)


def cluster_faults(cluster: Cluster, severity: Severity) -> Iterator[Fault]:
    """Yield the faults of a declaration and its pools for all rules of its cloud with that severity."""
    cloud = cluster.site.cloud
    for rule in RULES:
        if isinstance(rule, ClusterRule) and rule.severity is severity and rule.cloud in (None, cloud):
            for fault in rule.check(cluster):
                yield replace(fault, rule=rule.id)
    for pool in pools_of(cluster):
        yield from pool_faults(pool, severity)
