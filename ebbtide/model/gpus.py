"""Pools with GPUs, and the installers of their drivers."""

from ebbtide.catalog import CloudKind, is_tpu, partitions
from ebbtide.model.cluster import Cluster
from ebbtide.model.completion import machine_of
from ebbtide.model.pool import Accelerator, Pool
from ebbtide.model.site import Site


def accelerators_of(pool: Pool, site: Site) -> tuple[str, int]:
    """Return the type and count of a node's accelerators, by default those of its machine; empty and 0 for
    none."""
    if pool.accelerator is not None:
        return pool.accelerator.type, pool.accelerator.count
    machine = machine_of(pool, site)
    return (machine.accelerator, machine.accelerator_count) if machine else ("", 0)


def _partitions(accelerator: Accelerator, cloud: CloudKind) -> int:
    partition = accelerator.gpu_partition_size or accelerator.gpu_instance_profile
    return partitions(cloud, accelerator.type).get(partition, 1) if partition else 1


def shares(accelerator: Accelerator, cloud: CloudKind) -> int:
    """Return the number of `nvidia.com/gpu` that one GPU provides: its partitions, times the containers that
    share each partition (GoogleCloudPlatform/cluster-autoscaler@7d250507, machinetypes/gpu.go,
    PhysicalToAllocatable)."""
    sharing = accelerator.gpu_sharing_config
    return _partitions(accelerator, cloud) * (sharing.max_shared_clients_per_gpu if sharing else 1)


def most_requested(accelerator: Accelerator, cloud: CloudKind) -> int:
    """Return the maximum that one container can request. For shared GPUs that is 1, or all of one GPU with
    `mps`: GKE's device plugin rejects more, and the pod fails (GKE docs, timesharing-gpus;
    container-engine-accelerators, pkg/gpu/nvidia/gpusharing, 2026)."""
    sharing, whole = accelerator.gpu_sharing_config, accelerator.count * _partitions(accelerator, cloud)
    if sharing is None:
        return whole
    alone = sharing.gpu_sharing_strategy == "mps" and whole == 1
    return sharing.max_shared_clients_per_gpu if alone else 1


def has_tpus(pool: Pool, site: Site) -> bool:
    """Return whether a node has TPUs."""
    kind, _ = accelerators_of(pool, site)
    return is_tpu(kind)


def has_gpus(pool: Pool, site: Site) -> bool:
    """Return whether a node has GPUs. TPUs are excluded, since they need no driver."""
    kind, _ = accelerators_of(pool, site)
    return bool(kind) and not is_tpu(kind)


def cloud_installs(pool: Pool, cluster: Cluster) -> bool:
    """Return whether the cloud installs the driver of a pool, as written or completed: by the pool's own
    field, or else by `addons.drivers`."""
    written = pool.accelerator.driver if pool.accelerator is not None else None
    if written is None:
        return cluster.addons.drivers == "managed"
    return written != "none"


def gpu_pools(cluster: Cluster) -> tuple[Pool, ...]:
    """Pools whose nodes have GPUs."""
    return tuple(pool for pool in cluster.pools if has_gpus(pool, cluster.site))


def pools_left_to_us(cluster: Cluster) -> tuple[Pool, ...]:
    """GPU pools whose driver the cloud does not install, and to which `addons.drivers` applies."""
    return tuple(pool for pool in gpu_pools(cluster) if not cloud_installs(pool, cluster))


def measured_pools(cluster: Cluster) -> tuple[Pool, ...]:
    """GPU pools on which `addons.metrics` measures the GPUs: those with the cloud's driver, on AKS of whole
    GPUs.

    GKE's exporter needs GKE's drivers (GKE docs, dcgm-metrics, 2026). DCGM reports the utilization of a GPU
    instance only to containers with CAP_SYS_ADMIN (NVIDIA docs, dcgm-exporter, 2026), which the exporter on
    AKS does not have.
    """
    if cluster.addons.metrics is None:
        return ()
    partitioned = (
        {pool.name for pool in cluster.pools if pool.accelerator and pool.accelerator.gpu_instance_profile}
        if cluster.site.cloud is CloudKind.AKS
        else set[str]()
    )
    return tuple(
        pool for pool in gpu_pools(cluster) if cloud_installs(pool, cluster) and pool.name not in partitioned
    )
