"""Kueue's limits, and the memory that the work in the queues takes in it."""

import math

from ebbtide.declaration.model.addons import Kueue
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.tenancy import Limits
from ebbtide.declaration.providers.constraints import most
from ebbtide.values.kueue_api import API_VERSION

FLAVORS_IN_A_GROUP = most(f"kubernetes:{API_VERSION}:ClusterQueue", "spec.resourceGroups.flavors")
"""Kueue's limit for the flavors of one resource group."""

TAINTS_OF_A_FLAVOR = most(f"kubernetes:{API_VERSION}:ResourceFlavor", "spec.nodeTaints")
"""Kueue's limit for the taints of a flavor, and for its tolerations."""

_EMPTY_MIB = 160
_JOB_KIB = 40
_LARGE_JOB_KIB = 190
_LEAST_LIMIT_MIB = 512
"""The chart's limit (0.19.2)."""


def pending_jobs(cluster: Cluster) -> int:
    """Return the number of Jobs that may wait at once: the limits of all tenants together."""
    return sum((tenant.object_limits or Limits()).jobs for tenant in cluster.tenants)


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
