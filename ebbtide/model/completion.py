"""Completion of a declaration with defaults and derived values, before resources are derived from it."""

from dataclasses import replace

from ebbtide.catalog import (
    CLOUD_SPECS,
    SMT_DISABLED,
    CloudKind,
    Machine,
    boot_disk_types,
    find_machine,
    is_tpu,
    local_ssds,
    machine_series,
)
from ebbtide.model.capacity import FlexStart, OnDemand, Queued, Reservation
from ebbtide.model.cluster import Cluster
from ebbtide.model.fallback import fallback_of
from ebbtide.model.pool import Accelerator, Disk, LocalSsdConfig, Nodes, Pool
from ebbtide.model.site import Site
from ebbtide.model.tpus import slice_nodes

_WORK_DISK_GIB = 100


def machine_of(pool: Pool, site: Site) -> Machine | None:
    """Return a pool's machine, from the catalog or as declared; None if its resources are unknown."""
    shape = pool.machine
    if shape is None:
        return None
    machine = find_machine(site.cloud, shape.type)
    if machine is None and shape.vcpus is not None and shape.memory_gib is not None:
        family = shape.type.split("-")[0]
        machine = Machine(
            cloud=site.cloud,
            name=shape.type,
            vcpus=shape.vcpus,
            memory_gib=shape.memory_gib,
            family=family,
            accelerator=shape.accelerators.type if shape.accelerators else "",
            accelerator_count=shape.accelerators.count if shape.accelerators else 0,
            attachable=family == "n1" and shape.accelerators is None,
        )
    threads = 1 if pool.labels.get(SMT_DISABLED) == "true" else pool.threads_per_core
    return replace(machine, threads_per_core=threads) if machine and threads else machine


def _accelerator(pool: Pool, machine: Machine | None) -> Accelerator | None:
    """Return a pool's accelerators, by default those of the machine, with the driver that the cloud installs;
    a TPU has no driver."""
    accelerator = pool.accelerator
    if accelerator is None:
        if machine is None or not machine.accelerator:
            return None
        accelerator = Accelerator(type=machine.accelerator, count=machine.accelerator_count)
    if is_tpu(accelerator.type):
        return accelerator
    return accelerator.model_copy(update={"driver": accelerator.driver or "default"})


def _nodes(pool: Pool, site: Site) -> Nodes:
    together = slice_nodes(pool, machine_of(pool, site))
    if together > 1 and pool.nodes.count is None:
        return pool.nodes.model_copy(update={"min": pool.nodes.min or 0, "max": pool.nodes.max or together})
    if pool.nodes.count is not None or pool.nodes.min is not None:
        return pool.nodes
    recommended = CLOUD_SPECS[site.cloud].system_nodes
    fewest = min(recommended, pool.nodes.max or recommended) if pool.is_system else 0
    return pool.nodes.model_copy(update={"min": fewest})


def _disk(pool: Pool, machine: Machine | None, site: Site) -> Disk:
    size = CLOUD_SPECS[site.cloud].system_disk_gib if pool.is_system else _WORK_DISK_GIB
    types = boot_disk_types(site.cloud, machine.family if machine else "")
    return pool.disk.model_copy(
        update={"size_gib": pool.disk.size_gib or size, "type": pool.disk.type or types[0]}
    )


def _local_ssds(config: LocalSsdConfig | None, pool: Pool) -> LocalSsdConfig | None:
    """Return a local SSD config with the disk count that the machine type always has."""
    known = local_ssds(pool.machine.type) if pool.machine else None
    if config is None or config.local_ssd_count is not None or known is None:
        return config
    return config.model_copy(update={"local_ssd_count": known.own})


def _gvnic_only(pool: Pool) -> bool:
    series = machine_series(pool.machine.type) if pool.machine else None
    return series is not None and series.gvnic_only


def _has_cache(pool: Pool) -> bool:
    return any(disk.mode is not None for disk in pool.secondary_boot_disks)


def _gke_only(pool: Pool) -> dict[str, object]:
    scheduled = isinstance(pool.capacity, FlexStart | Queued)
    steady = isinstance(pool.capacity, OnDemand | Reservation)
    return {
        "location_policy": pool.location_policy or ("balanced" if steady else "any"),
        "auto_repair": (not scheduled) if pool.auto_repair is None else pool.auto_repair,
        "auto_upgrade": True if pool.auto_upgrade is None else pool.auto_upgrade,
        "image_streaming": True
        if pool.image_streaming is None and _has_cache(pool)
        else pool.image_streaming,
        "gvnic": True if pool.gvnic is None and _gvnic_only(pool) else pool.gvnic,
        "ephemeral_storage_local_ssd_config": _local_ssds(pool.ephemeral_storage_local_ssd_config, pool),
        "local_nvme_ssd_block_config": _local_ssds(pool.local_nvme_ssd_block_config, pool),
    }


def complete_pool(pool: Pool, site: Site) -> Pool:
    """Complete a pool with the defaults of its role, machine, capacity type and cloud."""
    machine = machine_of(pool, site)
    update: dict[str, object] = {
        "accelerator": _accelerator(pool, machine),
        "nodes": _nodes(pool, site),
        "disk": _disk(pool, machine, site),
        "image": pool.image or CLOUD_SPECS[site.cloud].images[0],
    }
    if site.cloud is CloudKind.GKE:
        update |= _gke_only(pool)
    return pool.model_copy(update=update)


def _with_home(pool: Pool, cluster: Cluster) -> Pool:
    """Remove the system pool's taint if an installed add-on has pods without tolerations."""
    needs_untainted = any(add_on.spec.untolerating for add_on in cluster.installed)
    if pool.is_system and pool.taints is None and needs_untainted:
        return pool.model_copy(update={"taints": ()})
    return pool


NO_PLUGIN_LABEL = "gke-no-default-nvidia-gpu-device-plugin"
"""Label that keeps GKE's device plugin off a node: NVIDIA's operator installs its own, and two would conflict
(GKE docs, gpu-operator, 2026)."""


def _with_driver(pool: Pool, cluster: Cluster) -> Pool:
    """Complete a pool without driver settings: without the cloud's driver if the cluster declares another
    installer, and without the cloud's device plugin if NVIDIA's operator installs both."""
    if cluster.addons.drivers == "managed":
        return pool
    accelerator = _accelerator(pool, machine_of(pool, cluster.site))
    if accelerator is None or accelerator.driver is None:
        return pool
    if pool.accelerator is None or pool.accelerator.driver is None:
        pool = pool.model_copy(update={"accelerator": accelerator.model_copy(update={"driver": "none"})})
    by_operator = cluster.addons.drivers == "gpu-operator" and cluster.site.cloud is CloudKind.GKE
    if by_operator and pool.accelerator is not None and pool.accelerator.driver == "none":
        return pool.model_copy(update={"labels": {NO_PLUGIN_LABEL: "true", **pool.labels}})
    return pool


def _with_fallback(pool: Pool, cluster: Cluster) -> Pool:
    """Add the label that alternative pools of a queue share."""
    queue = fallback_of(pool.name, cluster)
    if not queue:
        return pool
    return pool.model_copy(
        update={"labels": {**pool.labels, CLOUD_SPECS[cluster.site.cloud].fallback_key: queue}}
    )


def complete(cluster: Cluster) -> Cluster:
    """Complete every pool of a declaration; complete(complete(c)) == complete(c)."""
    pools = tuple(
        complete_pool(_with_fallback(_with_driver(_with_home(pool, cluster), cluster), cluster), cluster.site)
        for pool in cluster.pools
    )
    return cluster.model_copy(update={"pools": pools})
