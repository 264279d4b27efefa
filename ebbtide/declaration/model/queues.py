"""Queues of a cluster: as declared, or one for each kind of hardware; and the memory that
the work in them takes in Kueue."""

import math

from ebbtide.declaration.catalog import AMD64, vendor
from ebbtide.declaration.model.addons import Kueue
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.tenancy import Limits, Queue
from ebbtide.declaration.model.tenants import tenants_of
from ebbtide.declaration.providers.constraints import most
from ebbtide.values.kueue_api import API_VERSION

FLAVORS_IN_A_GROUP = most(f"kubernetes:{API_VERSION}:ClusterQueue", "spec.resourceGroups.flavors")
"""Kueue's limit for the flavors of one resource group."""

TAINTS_OF_A_FLAVOR = most(f"kubernetes:{API_VERSION}:ResourceFlavor", "spec.nodeTaints")
"""Kueue's limit for the taints of a flavor, and for its tolerations."""

CPU_QUEUE = "cpu"
"""Default queue over the pools without accelerators."""


def queues_of(cluster: Cluster) -> tuple[Queue, ...]:
    """Return the cluster's queues: the declared ones; by default `cpu` over the CPU pools, `cpu-arm64` over
    those with Arm processors, and one for each accelerator type, named after the type without its vendor
    (`t4`, `a100-80gb`), in the order of the declaration. Empty without Kueue. The result is the same before
    and after completion."""
    if cluster.queues or not cluster.has_kueue:
        return cluster.queues
    pools: dict[str, list[str]] = {CPU_QUEUE: []}
    for pool in cluster.work_pools:
        kind = pool.accelerator_type
        hardware = kind.removeprefix(f"{vendor(kind)}-").removeprefix("tesla-")
        cpus = CPU_QUEUE if pool.architecture == AMD64 else f"{CPU_QUEUE}-{pool.architecture}"
        pools.setdefault(hardware or cpus, []).append(pool.name)
    return tuple(Queue(name=name, pools=tuple(names)) for name, names in pools.items() if names)


_EMPTY_MIB = 160
_JOB_KIB = 40
_LARGE_JOB_KIB = 190
_LEAST_LIMIT_MIB = 512
"""The chart's limit (0.19.2)."""


def pending_jobs(cluster: Cluster) -> int:
    """Return the number of Jobs that may wait at once: the limits of all tenants together."""
    return sum((tenant.object_limits or Limits()).jobs for tenant in tenants_of(cluster))


def kueue_memory(cluster: Cluster) -> tuple[int, int]:
    """Return the memory that Kueue's controller requests, and its limit, in MiB.

    The request holds as many pending Jobs as the tenants may have, if their pods have one container: Kueue
    0.19.2 takes 141 MB without Jobs, and 331 MB with 4,931 such Jobs (measured, 2026-11). The limit holds as
    many large ones: 512 MiB were too little for about 2,000 Workloads (marin-community/marin, PR 7502).
    """
    jobs = pending_jobs(cluster)
    request, limit = (_in_steps(_EMPTY_MIB + jobs * size / 1024) for size in (_JOB_KIB, _LARGE_JOB_KIB))
    return max(round(Kueue.spec.footprint.requests.memory_mib), request), max(_LEAST_LIMIT_MIB, limit)


def _in_steps(mib: float) -> int:
    return math.ceil(mib / 64) * 64
