"""Pools with NVIDIA's GPUs, by the installer of their drivers."""

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.resolved_pool import ResolvedPool


def gpu_pools(cluster: Cluster) -> tuple[ResolvedPool, ...]:
    """Return the pools whose nodes have NVIDIA's GPUs."""
    return tuple(pool for pool in cluster.resolved_pools if pool.has_gpus and not pool.has_amd_gpus)


def pools_left_to_us(cluster: Cluster) -> tuple[ResolvedPool, ...]:
    """Return the GPU pools whose driver the cloud does not install, and to which `addons.drivers` applies."""
    return tuple(pool for pool in gpu_pools(cluster) if not pool.has_cloud_driver)


def measured_pools(cluster: Cluster) -> tuple[ResolvedPool, ...]:
    """Return the GPU pools on which `addons.metrics` measures the GPUs: those with the cloud's driver, on AKS
    of whole GPUs.

    GKE's exporter needs GKE's drivers (GKE docs, dcgm-metrics, 2026). DCGM reports the utilization of a GPU
    instance only to containers with CAP_SYS_ADMIN (NVIDIA docs, dcgm-exporter, 2026), which the exporter on
    AKS does not have.
    """
    if cluster.addons.metrics is None:
        return ()
    on_aks = cluster.site.cloud is CloudKind.AKS
    return tuple(
        pool
        for pool in gpu_pools(cluster)
        if pool.has_cloud_driver
        and not (on_aks and pool.accelerator and pool.accelerator.gpu_instance_profile)
    )
