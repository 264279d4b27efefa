"""GKE node pools: fields of `gcp.container.NodePool` and `gcp.container.Cluster` (pulumi-gcp 10.2).

Automatic properties of nodes follow the GKE documentation (gpus, tpus, provisioningrequest; read 2026).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.facts import ClusterFacts, FindMachine, Inputs, RecordedPool
from ebbtide.analysis.recording.recording import Resource
from ebbtide.declaration.catalog.clouds import GKE_REGION_ZONES, PREEMPTIBLE_SECONDS, is_gke_zone
from ebbtide.declaration.catalog.gpu_direct import STRATEGIES, Strategy, networks_of
from ebbtide.declaration.catalog.machines import (
    HUGE_PAGE_MIB,
    HUGE_PAGES,
    Machine,
    custom_machine,
    find_machine,
    huge_pages_mib,
)
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.capacity import (
    AnyCapacity,
    FlexStart,
    OnDemand,
    Preemptible,
    Queued,
    Reservation,
    Spot,
)
from ebbtide.declaration.model.pool import (
    Accelerator,
    Disk,
    GpuSharingConfig,
    LocalSsdConfig,
    MachineShape,
    Nodes,
    Role,
    SecondaryBootDisk,
    Taint,
    TaintEffect,
    Upgrade,
)
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.site import Site

NODE_POOL: Final = "gcp:container/nodePool:NodePool"
CLUSTER: Final = "gcp:container/cluster:Cluster"
FUTURE_RESERVATION: Final = "gcp:compute/futureReservation:FutureReservation"

DEFAULT_MACHINE: Final = "e2-medium"
"""GKE's default machine type (GKE v1 API, NodeConfig.machineType)."""

_DISK_GIB: Final = 100  # GKE v1 API, NodeConfig.diskSizeGb
_DISK_TYPE: Final = "pd-balanced"

_CATALOG: Final[FindMachine] = partial(find_machine, CloudKind.GKE)
_SECONDS: Final = re.compile(r"^(\d+)(?:\.\d+)?s$")
_AFFINITIES: Final = {
    "SPECIFIC_RESERVATION": "specific",
    "ANY_RESERVATION": "any",
    "ANY_RESERVATION_THEN_FAIL": "any-then-fail",
}
_EFFECTS: Final = {
    "NO_SCHEDULE": TaintEffect.NO_SCHEDULE,
    "PREFER_NO_SCHEDULE": TaintEffect.PREFER_NO_SCHEDULE,
    "NO_EXECUTE": TaintEffect.NO_EXECUTE,
}
_IMAGES: Final = {"COS_CONTAINERD": "cos", "UBUNTU_CONTAINERD": "ubuntu"}
_DRIVERS: Final = {"INSTALLATION_DISABLED": "none", "LATEST": "latest"}


def read_node_pool(resource: Resource, **declared: Any) -> RecordedPool:
    """Read a separate node pool, with the fields that its component declares."""
    inputs = Inputs(resource.inputs)
    cluster = inputs.text("cluster").rpartition("/")[2]
    return read_pool(inputs, inputs.text("location"), cluster=cluster, urn=resource.urn, **declared)


def read_period(inputs: Inputs) -> tuple[str, tuple[datetime, datetime]]:
    """Return the name of a requested reservation, and its begin and end, from its inputs."""
    begin, end = (inputs.text(f"timeWindow.{name}") for name in ("startTime", "endTime"))
    return inputs.text("reservationName"), (datetime.fromisoformat(begin), datetime.fromisoformat(end))


def read_cluster(resource: Resource) -> ClusterFacts:
    """Read a cluster."""
    inputs = Inputs(resource.inputs)
    return ClusterFacts(
        urn=resource.urn,
        cloud=CloudKind.GKE,
        name=inputs.text("name"),
        location=inputs.text("location"),
        settings=tuple(_cluster_settings(inputs)),
    )


def _cluster_settings(inputs: Inputs) -> Iterator[str]:
    if inputs.flag("privateClusterConfig.enablePrivateEndpoint"):
        yield "control plane reached from its network alone"
    if recurrence := inputs.text("maintenancePolicy.recurringWindow.recurrence"):
        start, end = (
            inputs.text(f"maintenancePolicy.recurringWindow.{name}")[11:16]
            for name in ("startTime", "endTime")
        )
        yield f"maintenance {recurrence}, {start} to {end} UTC"
    for exclusion in inputs.parts("maintenancePolicy.maintenanceExclusions"):
        start, end = (exclusion.text(name)[:10] for name in ("startTime", "endTime"))
        yield f"{exclusion.text('exclusionOptions.scope')} from {start} until {end or 'the end of support'}"
    if key := inputs.text("databaseEncryption.keyName"):
        yield f"secrets encrypted with {key}"
    if key := inputs.text("nodeConfig.bootDiskKmsKey"):
        yield f"boot disks encrypted with {key}"


def read_inline_pools(resource: Resource, **declared: Any) -> Iterator[RecordedPool]:
    """Read the inline pools of a cluster: those listed in it, or the default pool if it is kept, with the
    fields that its component declares."""
    inputs = Inputs(resource.inputs)
    if inputs.flag("enableAutopilot") or inputs.flag("removeDefaultNodePool"):
        return
    default = {key: resource.inputs[key] for key in _DEFAULT_POOL if key in resource.inputs}
    for pool in inputs.parts("nodePools") or (Inputs({"name": "default-pool", **default}),):
        yield read_pool(
            pool,
            inputs.text("location"),
            cluster=inputs.text("name"),
            urn=resource.urn,
            inline=True,
            **declared,
        )


_DEFAULT_POOL: Final = ("initialNodeCount", "nodeConfig", "nodeLocations")


def read_pool(
    inputs: Inputs,
    location: str,
    *,
    default_zones: tuple[str, ...] = (),
    find: FindMachine = _CATALOG,
    periods: Mapping[str, tuple[datetime, datetime]] | None = None,
    **others: Any,
) -> RecordedPool:
    """Read a pool from its inputs.

    Args:
        inputs: its inputs, or those of its part of the cluster.
        location: zone or region of its cluster.
        default_zones: zones of a pool without its own, if known.
        find: returns the machine type of a name.
        periods: begin and end of each requested reservation, by name.
        others: the fields of `RecordedPool` that other resources have.
    """
    hardware = machine(inputs, find)
    accelerator, capacity = _accelerator(inputs, hardware), _capacity(inputs, periods or {})
    taints = tuple(map(_taint, inputs.parts("nodeConfig.taints")))
    zones = inputs.texts("nodeLocations")
    spread = len(zones or default_zones) or (1 if is_gke_zone(location) else GKE_REGION_ZONES)
    nodes, initial = _nodes(inputs, spread)
    repels = taints or accelerator or isinstance(capacity, Queued)
    topology = inputs.text("placementPolicy.tpuTopology")
    return RecordedPool.model_construct(
        site=Site(CloudKind.GKE, location),
        addons=NO_ADDONS,
        hardware=hardware,
        name=inputs.text("name"),
        role=Role.SYSTEM if (nodes.count or nodes.min) and not repels else Role.WORK,
        machine=MachineShape.model_construct(type=inputs.text("nodeConfig.machineType") or DEFAULT_MACHINE),
        accelerator=accelerator,
        capacity=capacity,
        nodes=nodes,
        initial_nodes=initial,
        zones=zones,
        disk=Disk.model_construct(
            size_gib=inputs.number("nodeConfig.diskSizeGb") or _DISK_GIB,
            type=inputs.text("nodeConfig.diskType") or _DISK_TYPE,
        ),
        ephemeral_storage_local_ssd_config=_local_ssds(inputs, "ephemeralStorageLocalSsdConfig"),
        local_nvme_ssd_block_config=_local_ssds(inputs, "localNvmeSsdBlockConfig"),
        secondary_boot_disks=tuple(
            SecondaryBootDisk.model_construct(
                disk_image=disk.text("diskImage"), mode=disk.text("mode") or None
            )
            for disk in inputs.parts("nodeConfig.secondaryBootDisks")
        ),
        image_streaming=inputs.flag("nodeConfig.gcfsConfig.enabled"),
        image=_IMAGES.get(inputs.text("nodeConfig.imageType").upper()),
        location_policy=inputs.text("autoscaling.locationPolicy").lower() or None,
        service_account=inputs.text("nodeConfig.serviceAccount") or None,
        threads_per_core=inputs.number("nodeConfig.advancedMachineFeatures.threadsPerCore"),
        shutdown_grace=_duration(inputs.number("nodeConfig.kubeletConfig.shutdownGracePeriodSeconds")),
        upgrade=_upgrade(inputs),
        auto_repair=inputs.flag("management.autoRepair"),
        auto_upgrade=inputs.flag("management.autoUpgrade"),
        compact=inputs.text("placementPolicy.type") == "COMPACT" and not topology,
        gvnic=inputs.flag("nodeConfig.gvnic.enabled"),
        gpu_direct=_gpu_direct(inputs),
        tpu_topology=topology or None,
        max_pods_per_node=inputs.number("maxPodsPerNode"),
        labels=inputs.labels("nodeConfig.labels"),
        taints=taints,
        run_limit=PREEMPTIBLE_SECONDS
        if isinstance(capacity, Preemptible)
        else seconds(inputs.text("nodeConfig.maxRunDuration")),
        billing=inputs.labels("nodeConfig.resourceLabels"),
        network_tags=inputs.texts("nodeConfig.tags"),
        **others,
    )


def _gpu_direct(inputs: Inputs) -> Strategy | None:
    """Return the GPUDirect of a pool, whose interfaces are in the networks that a stack creates for it."""
    subnets = [part.text("subnetwork") for part in inputs.parts("networkConfig.additionalNodeNetworkConfigs")]
    for strategy in STRATEGIES:
        networks = networks_of([strategy])
        if len(subnets) == len(networks) and all(
            subnet.endswith(f"-{network.name}") for subnet, network in zip(subnets, networks, strict=True)
        ):
            return strategy
    return None


def machine(inputs: Inputs, find: FindMachine = _CATALOG) -> Machine | None:
    """Return the machine of a pool, found by its type or parsed from a custom type's name; None if
    unknown."""
    name = inputs.text("nodeConfig.machineType") or DEFAULT_MACHINE
    known = find(name) or custom_machine(name)
    threads = inputs.number("nodeConfig.advancedMachineFeatures.threadsPerCore")
    pages = huge_pages_mib({size: inputs.number(f"{HUGE_PAGES}.{size}") for size in HUGE_PAGE_MIB})
    if known is None or not (threads or pages):
        return known
    return replace(known, threads_per_core=threads or known.threads_per_core, huge_pages_mib=pages)


def seconds(text: str) -> int | None:
    """Parse a duration such as `3600s`; None if malformed."""
    match = _SECONDS.match(text)
    return int(match[1]) if match else None


def _accelerator(inputs: Inputs, hardware: Machine | None) -> Accelerator | None:
    """Return the attached accelerators, or else the machine's."""
    for attached in inputs.parts("nodeConfig.guestAccelerators"):
        driver = attached.text("gpuDriverInstallationConfig.gpuDriverVersion")
        return Accelerator.model_construct(
            type=attached.text("type"),
            count=attached.number("count") or 1,
            driver=_DRIVERS.get(driver, "default"),
            gpu_partition_size=attached.text("gpuPartitionSize") or None,
            gpu_sharing_config=_sharing(attached),
        )
    if hardware is None or not hardware.accelerator:
        return None
    return Accelerator.model_construct(type=hardware.accelerator, count=hardware.accelerator_count)


def _sharing(attached: Inputs) -> GpuSharingConfig | None:
    strategy = attached.text("gpuSharingConfig.gpuSharingStrategy")
    clients = attached.number("gpuSharingConfig.maxSharedClientsPerGpu")
    if not strategy and not clients:
        return None
    return GpuSharingConfig.model_construct(
        gpu_sharing_strategy=strategy.lower().replace("_", "-"), max_shared_clients_per_gpu=clients or 1
    )


def _capacity(inputs: Inputs, periods: Mapping[str, tuple[datetime, datetime]]) -> AnyCapacity:
    """Return the capacity type: of the first field that is set."""
    duration = _duration(seconds(inputs.text("nodeConfig.maxRunDuration")))
    if inputs.flag("queuedProvisioning.enabled"):
        return Queued.model_construct(max_run_duration=duration)
    if inputs.flag("nodeConfig.flexStart"):
        return FlexStart.model_construct(max_run_duration=duration)
    if inputs.flag("nodeConfig.spot"):
        return Spot()
    if inputs.flag("nodeConfig.preemptible"):
        return Preemptible()
    affinity = inputs.text("nodeConfig.reservationAffinity.consumeReservationType")
    if affinity in _AFFINITIES:
        name = inputs.text("nodeConfig.reservationAffinity.values[0]") or None
        begin, end = periods.get(name or "", (None, None))
        return Reservation.model_construct(affinity=_AFFINITIES[affinity], name=name, from_=begin, until=end)
    return OnDemand()


def _duration(length: int | None) -> timedelta | None:
    return None if length is None else timedelta(seconds=length)


def _upgrade(inputs: Inputs) -> Upgrade | None:
    surge, unavailable = (inputs.number(f"upgradeSettings.max{name}") for name in ("Surge", "Unavailable"))
    if surge is None and unavailable is None:
        return None
    return Upgrade.model_construct(max_surge=surge, max_unavailable=unavailable)


def _local_ssds(inputs: Inputs, field: str) -> LocalSsdConfig | None:
    count = inputs.number(f"nodeConfig.{field}.localSsdCount")
    return LocalSsdConfig.model_construct(local_ssd_count=count) if count else None


def _nodes(inputs: Inputs, spread: int) -> tuple[Nodes, int | None]:
    """Return totals, and the node count at creation. GKE counts `initialNodeCount`, `nodeCount` and limits
    other than totals per zone."""
    initial = inputs.number("nodeCount")
    if initial is None:
        initial = inputs.number("initialNodeCount")
    total = None if initial is None else initial * spread
    if not inputs.has("autoscaling"):
        return Nodes.model_construct(count=total or 0), total
    most = inputs.number("autoscaling.totalMaxNodeCount")
    if most:  # a Terraform state has 0 for limits for each zone
        least = inputs.number("autoscaling.totalMinNodeCount") or 0
        return Nodes.model_construct(min=least, max=most), total
    least, most = (inputs.number(f"autoscaling.{name}NodeCount") or 0 for name in ("min", "max"))
    return Nodes.model_construct(min=least * spread, max=most * spread), total


def _taint(taint: Inputs) -> Taint:
    effect = taint.text("effect")
    return Taint.model_construct(
        key=taint.text("key"), value=taint.text("value"), effect=_EFFECTS.get(effect, effect)
    )
