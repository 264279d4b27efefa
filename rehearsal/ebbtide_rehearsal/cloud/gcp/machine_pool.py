"""Conversion of a GKE node pool to the node pool of the controllers."""

from functools import partial
from typing import Final

from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.reading.gke import read_pool
from ebbtide.declaration.catalog import LOCAL_SSD_GIB, CloudKind
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide_rehearsal.cloud.gcp.labels_and_taints import added_labels, added_taints, declared_taints
from ebbtide_rehearsal.cloud.gcp.request import GoogleCloud, Request, inputs_of
from ebbtide_rehearsal.cloud.nodes.machines import machines
from ebbtide_rehearsal.cloud.pools import NodePool, node_pool
from ebbtide_rehearsal.cloud.regions import machine_of
from ebbtide_rehearsal.cloud.store import Resource

_SSD: Final = {"pd-balanced", "pd-ssd"}
"""Disk types that count towards `SSD_TOTAL_GB` (Compute Engine docs, allocation-quotas, 2026)."""

_SYSTEM_OF_SSDS: Final = {1: 50, 2: 75}


def machine_pool(request: Request, cluster: str, cluster_zones: tuple[str, ...]) -> NodePool:
    """Return the node pool for the controllers of nodes.

    Args:
        request: the node pool, accepted by the rules.
        cluster: id of its cluster.
        cluster_zones: default zones for nodes of the cluster's pools.

    Raises:
        LookupError: its machine type is unknown.
    """
    fields = request.fields
    find = partial(machine_of, request.cloud.store, CloudKind.GKE)
    pool = read_pool(fields, region_of(cluster_zones[0]), default_zones=cluster_zones, find=find)
    machine, kind = pool.hardware, pool.capacity.kind
    has = pool.allocatable
    if machine is None or has is None:
        raise LookupError(pool.machine_type)
    zones = pool.zones or cluster_zones
    accelerator = (pool.accelerator.type, pool.accelerator.count) if pool.accelerator else None
    return node_pool(
        pool,
        cluster=cluster,
        region=region_of(zones[0]),
        zones=zones,
        initial=node_count(request) * len(zones),
        labels={**added_labels(fields, machine, kind, accelerator, zones), **pool.labels},
        taints=(*declared_taints(fields), *added_taints(fields, machine, kind, accelerator)),
        allocatable={
            "cpu": f"{int(has.cpu_m)}m",
            "memory": f"{int(has.memory_mib)}Mi",
            "pods": str(pool.max_pods_per_node or _PODS),
            "ephemeral-storage": f"{ephemeral_gib(pool)}Gi",
        },
        # By default from 1.32.2-gke.1297000 (GKE docs, gpus).
        driver_installed=pool.has_cloud_driver,
        hourly=pool.priced_node.hourly(kind),
        default_run_seconds=_LONGEST.get(kind),
        ssd_gb=(pool.disk.size_gib or 0) if pool.disk.type in _SSD else 0,
    )


_PODS: Final = 110  # GKE docs, flexible-pod-cidr (2026)
_WEEK: Final = 7 * 24 * 3600
_LONGEST: Final = {"flex-start": _WEEK, "queued": _WEEK}
"""Default maximum run durations in seconds (GKE docs, dws-flex-start-training)."""


def ephemeral_gib(pool: RecordedPool) -> int:
    """Return the allocatable ephemeral storage of a node, GiB: its boot disk or local SSDs, less the eviction
    threshold and the system's reservation (GKE docs, plan-node-sizes, 2026)."""
    config = pool.ephemeral_storage_local_ssd_config
    if config is not None and config.local_ssd_count:
        size = float(config.local_ssd_count * LOCAL_SSD_GIB)
        system = float(_SYSTEM_OF_SSDS.get(config.local_ssd_count, 100))
    else:
        size = float(pool.disk.size_gib or 0)
        system = min(0.5 * size, 6 + 0.35 * size, 100)
    return max(0, int(0.9 * size - system))


def node_count(request: Request) -> int:
    """Return the number of nodes in each zone of a new or changed pool.

    The provider resizes a pool only if the count differs from its state (`nodePoolUpdate`).
    """
    count = request.fields.number("nodeCount")
    if request.old is None:
        return (request.fields.number("initialNodeCount") if count is None else count) or 0
    if count is None or count == request.old.state.get("nodeCount"):
        return current_count(request.cloud, request.old)
    return count


def current_count(cloud: GoogleCloud, pool: Resource) -> int:
    """Return the number of nodes in each zone of an existing pool, the average of an autoscaled one
    (`flattenNodePool`)."""
    if not inputs_of(pool).has("autoscaling"):
        return pool.state.get("nodeCount", 0)
    cluster, _, name = pool.id.rpartition("/nodePools/")
    nodes = sum(machine.pool == name and not machine.is_leaving for machine in machines(cloud.store, cluster))
    return nodes // max(1, len(pool.state["nodeLocations"]))
