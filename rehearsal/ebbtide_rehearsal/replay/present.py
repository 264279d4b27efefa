"""The declaration of a running cluster, from its placement profile and Kueue's objects."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.operations.traces.present import Present
from ebbtide.placement.kueue import layers
from ebbtide.placement.profile import PoolProfile, Profile
from ebbtide.placement.queueing import Check, ClusterQueue, Cohort, LocalQueueObject, Queueing
from ebbtide.placement.quotas import CPU, MEMORY, Flavor, Offer
from ebbtide_rehearsal.cloud.pools import NO_ZONE, NodePool
from ebbtide_rehearsal.replay.declared import Declaration, assembled
from ebbtide_rehearsal.replay.mapping import Work

_ALL: Final = "all"
_CONFIGURATION: Final = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
}
"""The part of Ebbtide's configuration of Kueue that decides about order."""


def present_declaration(profile: Profile, present: Present) -> Declaration:
    """Return the declaration of a cluster; without Kueue's objects, its queues share all nodes."""
    profiles = {pool.name: pool for pool in profile.pools if pool.cpu_m}
    pools = tuple(_pool(pool, profile) for pool in profiles.values())
    objects = present.objects or tuple(item for layer in layers(_queueing(profile)) for item in layer)
    configuration = present.configuration or _CONFIGURATION
    return assembled(profile.cluster, pools, profiles, objects, configuration=configuration)


def with_nodes(declaration: Declaration, nodes: Mapping[str, int]) -> Declaration:
    """Return a declaration with the existing nodes of its pools; nodes of a queued pool come with their
    request."""
    pools = tuple(
        pool if pool.capacity == "queued" else pool.having(initial=min(pool.maximum, nodes.get(pool.name, 0)))
        for pool in declaration.pools
    )
    return replace(declaration, pools=pools)


def needed_nodes(declaration: Declaration, running: Sequence[Work]) -> dict[str, int]:
    """Return the least number of nodes of each pool that running work fills."""
    needed: defaultdict[str, float] = defaultdict(float)
    for work in running:
        pools = declaration.flavors[work.flavor].pools if work.flavor else work.queue.pools
        for pool in pools[:1]:
            node, shape = declaration.capacity[pool], work.shape
            pairs = (shape.cpu, node.cpu), (shape.memory, node.memory), (shape.gpus, node.gpus)
            needed[pool] += work.pods * max(part / whole for part, whole in pairs if part and whole)
    return {pool: math.ceil(count - 1e-9) for pool, count in needed.items()}


def _pool(pool: PoolProfile, profile: Profile) -> NodePool:
    accelerator = pool.accelerator
    return NodePool(
        cluster=profile.cluster,
        name=pool.name,
        cloud="aks" if profile.cloud == "aks" else "gke",
        machine=pool.machine,
        capacity=cast("CapacityKind", pool.capacity),
        region=profile.location,
        zones=(NO_ZONE,),
        labels=pool.labels,
        taints=pool.taints,
        allocatable={"cpu": f"{pool.cpu_m}m", "memory": f"{pool.memory_mib}Mi"},
        accelerator=(accelerator.type, accelerator.count // accelerator.shares) if accelerator else None,
        accelerator_resource=accelerator.resource if accelerator else "",
        driver_installed=True,
        minimum=0,
        maximum=pool.max_nodes,
        initial=0,
        autoscaled=True,
        hourly=pool.price.per_hour or 0.0,
        max_run_seconds=pool.max_run_seconds,
        shares=accelerator.shares if accelerator else 1,
        together=accelerator.slice_nodes if accelerator else 1,
    )


def _queueing(profile: Profile) -> Queueing:
    """Return the queues of a profile, in one cohort that owns all nodes."""
    used = [pool for pool in profile.pools if pool.cpu_m and pool.queues]
    flavors = {pool.name: _flavor(pool) for pool in used}
    checks = {
        item.name: Check(f"queued-{item.name}", "queued", item.accelerator, ())
        for item in flavors.values()
        if item.queued
    }
    local = [(queue, local) for queue in profile.queues for local in queue.local_queues]
    return Queueing(
        flavors=tuple(flavors.values()),
        checks=tuple(checks.values()),
        cohorts=(
            Cohort(_ALL, "", tuple((flavors[pool.name], {pool.name: pool.max_nodes}) for pool in used)),
        ),
        cluster_queues=tuple(
            ClusterQueue(
                name=f"{own.namespace}.{own.name}",
                cohort=_ALL,
                flavors=tuple((flavors[pool], dict[str, int]()) for pool in queue.pools if pool in flavors),
                weight=1,
                namespaces=(own.namespace,),
                checks={checks[pool].name: (pool,) for pool in queue.pools if pool in checks},
            )
            for queue, own in local
        ),
        local_queues=tuple(
            LocalQueueObject(own.name, own.namespace, f"{own.namespace}.{own.name}") for _, own in local
        ),
    )


def _flavor(pool: PoolProfile) -> Flavor:
    node: dict[str, Any] = {CPU: pool.cpu_m, MEMORY: pool.memory_mib}
    if pool.accelerator:
        node[pool.accelerator.resource] = pool.accelerator.count
    return Flavor(
        name=pool.name,
        labels={item.key: item.values[0] for item in pool.affinity},
        taints=pool.taints,
        tolerations=pool.tolerations,
        offers=(Offer(pool.name, node, pool.max_nodes),),
        queued=pool.capacity == "queued",
    )
