"""Resolution of a pool: its defaults, and the facts derived from it, its cluster's site and the add-ons."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from ebbtide.declaration.catalog.accelerators import AMD, chips_of, is_tpu, partitions, vendor
from ebbtide.declaration.catalog.amounts import PricedNode
from ebbtide.declaration.catalog.clouds import (
    CLOUD_SPECS,
    GKE_REGION_ZONES,
    PREEMPTIBLE_SECONDS,
    SMT_DISABLED,
)
from ebbtide.declaration.catalog.disks import boot_disk_types, local_ssds
from ebbtide.declaration.catalog.machines import (
    HUGE_PAGES,
    Machine,
    MachineSeries,
    architecture,
    find_machine,
    huge_pages_mib,
    machine_series,
    series_name,
)
from ebbtide.declaration.catalog.resources import NodeSettings, Resources, footprint, has_footprint
from ebbtide.declaration.model.addons import Addons
from ebbtide.declaration.model.capacity import FlexStart, OnDemand, Preemptible, Queued, Reservation
from ebbtide.declaration.model.labels_and_taints import LabelsAndTaints, labels_and_taints
from ebbtide.declaration.model.pool import Accelerator, Disk, LocalSsdConfig, MachineShape, Nodes, Pool
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at

NO_PLUGIN_LABEL: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Label that keeps GKE's device plugin off a node: NVIDIA's operator installs its own, and two would conflict
(GKE docs, gpu-operator, 2026)."""

NO_ADDONS: Final = Addons()
_WORK_DISK_GIB: Final = 100
_GPU_DIRECT_DAEMONS: Final = {
    "rdma": ("gpu-direct-rdma-node",),
    "tcpxo": ("gpu-direct-tcpxo-node", "gpu-direct-injector-node"),
}


class ResolvedPool(Pool):
    """A complete pool, and every fact that is derived from it. A changed copy is a `Pool`."""

    site: Site
    """Site of its cluster."""
    addons: Addons
    """Add-ons of its cluster."""
    hardware: Machine | None
    """Machine, from the catalog or as declared; None if its resources are unknown."""

    def __copy__(self) -> Pool:  # pyright: ignore[reportIncompatibleMethodOverride]  # see the class
        return Pool.model_construct(self.model_fields_set & Pool.model_fields.keys(), **_fields(self))

    @property
    def is_declared_open(self) -> bool:
        """True if the declaration has `taints: []`: steps of pipelines may run on such a system pool."""
        return self.taints == () and "taints" in self.model_fields_set

    @property
    def series(self) -> MachineSeries | None:
        """Series of its machine on GKE; None if the catalog has none."""
        return _series(self)

    @property
    def machine_type(self) -> str:
        """Machine type; empty if unknown."""
        return self.machine.type if self.machine else ""

    @property
    def architecture(self) -> str:
        """Architecture of its nodes: `amd64` or `arm64`."""
        return architecture(self.site.cloud, self.machine_type)

    @property
    def declared_shape(self) -> dict[str, Any] | None:
        """Machine type with its declared resources, which its component records; None for one of the
        catalog."""
        shape = self.machine
        if shape is None or shape.vcpus is None or find_machine(self.site.cloud, shape.type):
            return None
        return shape.model_dump(by_alias=True, exclude_none=True)

    @property
    def accelerator_type(self) -> str:
        """Type of a node's accelerators; empty for none."""
        return self.accelerator.type if self.accelerator else ""

    @property
    def has_tpus(self) -> bool:
        """True if a node has TPUs."""
        return is_tpu(self.accelerator_type)

    @property
    def has_gpus(self) -> bool:
        """True if a node has GPUs. TPUs are excluded, since they need no driver."""
        return self.accelerator is not None and not self.has_tpus

    @property
    def has_amd_gpus(self) -> bool:
        """True if a node has GPUs of AMD, for which no cloud installs a driver."""
        return vendor(self.accelerator_type) == AMD

    @property
    def has_cloud_driver(self) -> bool:
        """True if the cloud installs the driver of its accelerators."""
        return self.accelerator is not None and self.accelerator.driver != "none"

    @property
    def _partitions(self) -> int:
        accelerator = self.accelerator
        partition = accelerator and (accelerator.gpu_partition_size or accelerator.gpu_instance_profile)
        return partitions(self.site.cloud, self.accelerator_type).get(partition, 1) if partition else 1

    @property
    def shares(self) -> int:
        """Number of `nvidia.com/gpu` that one GPU provides: its partitions, times the containers that share
        each partition (GoogleCloudPlatform/cluster-autoscaler@7d250507, machinetypes/gpu.go,
        PhysicalToAllocatable)."""
        sharing = self.accelerator and self.accelerator.gpu_sharing_config
        return self._partitions * (sharing.max_shared_clients_per_gpu if sharing else 1)

    @property
    def requestable(self) -> int:
        """Number of accelerators, or shares of them, that the pods of a node can request."""
        return self.accelerator.count * self.shares if self.accelerator else 0

    @property
    def max_request(self) -> int:
        """Maximum that one container can request. For shared GPUs that is 1, or all of one GPU with `mps`:
        GKE's device plugin rejects more, and the pod fails (GKE docs, timesharing-gpus;
        container-engine-accelerators, pkg/gpu/nvidia/gpusharing, 2026)."""
        sharing = self.accelerator and self.accelerator.gpu_sharing_config
        whole = self.accelerator.count * self._partitions if self.accelerator else 0
        if not sharing:
            return whole
        alone = sharing.gpu_sharing_strategy == "mps" and whole == 1
        return sharing.max_shared_clients_per_gpu if alone else 1

    @property
    def slice_nodes(self) -> int:
        """Number of nodes of a TPU slice; 1 for other pools."""
        return _slice_nodes(self.accelerator, self.tpu_topology)

    @property
    def idle_nodes(self) -> int:
        """Number of nodes without work: the fixed count, or the autoscaler's minimum."""
        return self.nodes.count or self.nodes.min or 0

    @property
    def max_nodes(self) -> int:
        """Maximum number of nodes: the fixed count, the autoscaler's maximum, or the nodes of a TPU slice."""
        return self.nodes.count or self.nodes.max or 0

    @cached_property
    def zone_count(self) -> int:
        """Number of zones, by default the cluster's: one in a zonal cluster or on AKS, else those of the GKE
        region (three if unknown)."""
        if self.zones:
            return len(self.zones)
        match self.site.cloud:
            case CloudKind.GKE if not self.site.is_zonal:
                return len(self.site.locations.default_zones(self.site.region)) or GKE_REGION_ZONES
            case CloudKind.GKE | CloudKind.AKS:
                return 1

    @property
    def max_run_seconds(self) -> int | None:
        """Maximum lifetime of a node in seconds; None for no limit."""
        match self.capacity:
            case Preemptible():
                return PREEMPTIBLE_SECONDS
            case FlexStart(max_run_duration=limit) | Queued(max_run_duration=limit):
                return int(limit.total_seconds()) if limit else None
            case _:
                return None

    @property
    def is_billed_as_on_demand(self) -> bool:
        """True if its nodes are billed as on-demand ones, to which commitments apply."""
        capacity = self.capacity
        is_existing = isinstance(capacity, Reservation) and capacity.period is None
        return is_existing or isinstance(capacity, OnDemand)

    @property
    def reserves_machines(self) -> bool:
        """True if the stack reserves its machines: on GKE for a period, on AKS until the pool is removed."""
        capacity = self.capacity
        if not isinstance(capacity, Reservation):
            return False
        return capacity.period is not None or (self.site.cloud is CloudKind.AKS and capacity.name is None)

    @property
    def priced_node(self) -> PricedNode:
        """Properties of a node that determine its price."""
        return PricedNode(
            cloud=self.site.cloud,
            location=self.site.region,
            machine=self.machine_type,
            accelerator=self.accelerator_type,
            accelerators=self.accelerator.count if self.accelerator else 0,
            disk_type=self.disk.type,
            disk_gib=self.disk.size_gib,
        )

    @cached_property
    def labels_and_taints(self) -> LabelsAndTaints:
        """Labels and taints of its nodes."""
        return labels_and_taints(self, self.site.cloud)

    @cached_property
    def daemon_requests(self) -> Resources:
        """Requests of the cloud's and the add-ons' DaemonSets on a node."""
        items = (
            f"{self.site.cloud}-node",
            *self._gpu_daemons,
            *_GPU_DIRECT_DAEMONS.get(self.gpu_direct or "", ()),
            *(item for add_on in self.addons.declared if has_footprint(item := f"{add_on.spec.name}-node")),
        )
        total = Resources(0, 0)
        for item in items:
            total += footprint(item).requests
        return total

    @property
    def _gpu_daemons(self) -> tuple[str, ...]:
        if not self.has_gpus or self.has_amd_gpus:
            return ()
        if self.has_cloud_driver or self.addons.drivers in ("managed", "none"):
            exporter = ("dcgm-exporter-node",) if self.addons.metrics is not None else ()
            return (f"{self.site.cloud}-gpu-node", *exporter)
        if self.addons.drivers == "daemonset":
            return (f"{self.site.cloud}-gpu-node", "driver-daemonset")
        return ("gpu-operator-node",)

    @property
    def allocatable(self) -> Resources | None:
        """Allocatable resources of a node; None for an unknown machine."""
        if self.hardware is None:
            return None
        return self.hardware.allocatable(
            NodeSettings(self.max_pods_per_node, image_streaming=bool(self.image_streaming))
        )

    @cached_property
    def offered(self) -> Resources | None:
        """A node's capacity for work, in whole millicores and MiB: its allocatable resources, less the
        requests of DaemonSets; None for an unknown machine."""
        has, daemons = self.allocatable, self.daemon_requests
        return has and Resources(
            max(0, int(has.cpu_m - daemons.cpu_m)), max(0, int(has.memory_mib - daemons.memory_mib))
        )


def _series(pool: Pool) -> MachineSeries | None:
    return machine_series(pool.machine.type) if pool.machine else None


def _fields(pool: Pool) -> dict[str, Any]:
    return {name: getattr(pool, name) for name in Pool.model_fields}


def resolve(pool: Pool, site: Site, addons: Addons = NO_ADDONS, fallback: str = "") -> ResolvedPool:
    """Complete a pool with the defaults of its role, machine, capacity type, cloud and add-ons.

    Args:
        pool: the pool, as written or resolved; a pool that is resolved with these add-ons is returned as is.
        site: site of its cluster.
        addons: add-ons of its cluster.
        fallback: the queue in which it has alternatives; empty for none.
    """
    if isinstance(pool, ResolvedPool) and (pool.site, pool.addons) == (site, addons):
        return pool
    hardware = _hardware(pool, site)
    accelerator = _accelerator(pool, hardware, addons)
    update: dict[str, object] = {
        "accelerator": accelerator,
        "labels": _labels(pool, accelerator, site, addons, fallback),
        "taints": _taints(pool, addons),
        "nodes": _nodes(pool, _slice_nodes(accelerator, pool.tpu_topology), site),
        "disk": _disk(pool, site),
        "image": pool.image or CLOUD_SPECS[site.cloud].images[0],
    }
    if site.cloud is CloudKind.GKE:
        update |= _gke_only(pool)
    is_set = set(ResolvedPool.model_fields)
    if pool.taints is None or "taints" not in pool.model_fields_set:
        is_set.remove("taints")
    return ResolvedPool.model_construct(
        is_set, **_fields(pool) | update, site=site, addons=addons, hardware=hardware
    )


def _hardware(pool: Pool, site: Site) -> Machine | None:
    shape = pool.machine
    if shape is None:
        return None
    machine = find_machine(site.cloud, shape.type) or declared_machine(site.cloud, shape)
    threads = 1 if pool.labels.get(SMT_DISABLED) == "true" else pool.threads_per_core
    pages = huge_pages_mib(value_at(pool.overrides, HUGE_PAGES)) if site.cloud is CloudKind.GKE else 0
    if machine is None or not (threads or pages):
        return machine
    return replace(machine, threads_per_core=threads or machine.threads_per_core, huge_pages_mib=pages)


def declared_machine(cloud: CloudKind, shape: MachineShape) -> Machine | None:
    """Return a machine type with the resources that are declared with it; None if they are omitted."""
    if shape.vcpus is None or shape.memory_gib is None:
        return None
    family = series_name(shape.type)
    return Machine(
        cloud=cloud,
        name=shape.type,
        vcpus=shape.vcpus,
        memory_gib=shape.memory_gib,
        family=family,
        accelerator=shape.accelerators.type if shape.accelerators else "",
        accelerator_count=shape.accelerators.count if shape.accelerators else 0,
        attachable=family == "n1" and shape.accelerators is None,
    )


def _accelerator(pool: Pool, hardware: Machine | None, addons: Addons) -> Accelerator | None:
    """Return a pool's accelerators, by default those of the machine, with the driver that the cloud installs,
    unless the cluster declares another installer; a TPU has no driver, and AMD's is never installed
    (azure-aks-docs use-amd-gpus.md, 2025-06)."""
    accelerator = pool.accelerator
    if accelerator is None:
        if hardware is None or not hardware.accelerator:
            return None
        accelerator = Accelerator(type=hardware.accelerator, count=hardware.accelerator_count)
    if is_tpu(accelerator.type):
        return accelerator
    has_managed = addons.drivers == "managed" and vendor(accelerator.type) != AMD
    driver = accelerator.driver or ("default" if has_managed else "none")
    return accelerator.model_copy(update={"driver": driver})


def _labels(
    pool: Pool, accelerator: Accelerator | None, site: Site, addons: Addons, fallback: str
) -> dict[str, str]:
    """Return a pool's labels, with that of alternative pools, and that without the cloud's device plugin if
    NVIDIA's operator installs it."""
    by_operator = addons.drivers == "gpu-operator" and site.cloud is CloudKind.GKE
    no_plugin = by_operator and accelerator is not None and accelerator.driver == "none"
    return {
        **({NO_PLUGIN_LABEL: "true"} if no_plugin else {}),
        **pool.labels,
        **({CLOUD_SPECS[site.cloud].fallback_key: fallback} if fallback else {}),
    }


def _taints(pool: Pool, addons: Addons) -> tuple[Any, ...] | None:
    """Return a pool's taints, none for a system pool if an installed add-on has pods without tolerations."""
    untolerating = any(add_on.spec.untolerating for add_on in addons.declared if add_on.is_installed)
    return () if pool.is_system and pool.taints is None and untolerating else pool.taints


def _slice_nodes(accelerator: Accelerator | None, topology: str | None) -> int:
    """Return the number of nodes of a TPU slice (GoogleCloudPlatform/cluster-autoscaler@7d250507,
    machinetypes/machine_config_provider.go, NumNodesFromTopology)."""
    if accelerator is None or topology is None or not is_tpu(accelerator.type):
        return 1
    return max(1, chips_of(topology) // accelerator.count)


def _nodes(pool: Pool, together: int, site: Site) -> Nodes:
    if together > 1 and pool.nodes.count is None:
        return pool.nodes.model_copy(update={"min": pool.nodes.min or 0, "max": pool.nodes.max or together})
    if pool.nodes.count is not None or pool.nodes.min is not None:
        return pool.nodes
    recommended = CLOUD_SPECS[site.cloud].system_nodes
    fewest = min(recommended, pool.nodes.max or recommended) if pool.is_system else 0
    return pool.nodes.model_copy(update={"min": fewest})


def _disk(pool: Pool, site: Site) -> Disk:
    size = CLOUD_SPECS[site.cloud].system_disk_gib if pool.is_system else _WORK_DISK_GIB
    types = boot_disk_types(site.cloud, pool.machine.type if pool.machine else "")
    return pool.disk.model_copy(
        update={"size_gib": pool.disk.size_gib or size, "type": pool.disk.type or types[0]}
    )


def _local_ssds(config: LocalSsdConfig | None, pool: Pool) -> LocalSsdConfig | None:
    """Return a local SSD config with the disk count that the machine type always has."""
    known = local_ssds(pool.machine.type) if pool.machine else None
    if config is None or config.local_ssd_count is not None or known is None:
        return config
    return config.model_copy(update={"local_ssd_count": known.own})


def has_image_cache(pool: Pool) -> bool:
    """Return whether a pool has a disk with container images, which needs image streaming."""
    return any(disk.mode is not None for disk in pool.secondary_boot_disks)


def _gke_only(pool: Pool) -> dict[str, object]:
    scheduled = isinstance(pool.capacity, FlexStart | Queued)
    steady, series = isinstance(pool.capacity, OnDemand | Reservation), _series(pool)
    policy, streams = pool.location_policy or ("balanced" if steady else "any"), pool.image_streaming
    return {
        "location_policy": policy if pool.nodes.count is None else pool.location_policy,
        "auto_repair": (not scheduled) if pool.auto_repair is None else pool.auto_repair,
        "auto_upgrade": True if pool.auto_upgrade is None else pool.auto_upgrade,
        "image_streaming": True if streams is None and has_image_cache(pool) else streams,
        "gvnic": True if pool.gvnic is None and series and series.gvnic_only else pool.gvnic,
        "ephemeral_storage_local_ssd_config": _local_ssds(pool.ephemeral_storage_local_ssd_config, pool),
        "local_nvme_ssd_block_config": _local_ssds(pool.local_nvme_ssd_block_config, pool),
    }
