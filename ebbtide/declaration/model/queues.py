"""Queues of a cluster: as declared, or one for each kind of hardware."""

from ebbtide.declaration.catalog import AMD64, vendor
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.tenancy import Queue
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
