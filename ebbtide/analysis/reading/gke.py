"""GKE node pools: fields of `gcp.container.NodePool` and `gcp.container.Cluster` (pulumi-gcp 10.2).

Automatic properties of nodes follow the GKE documentation (gpus, tpus, provisioningrequest; read 2026).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.facts import ClusterFacts, FindMachine, Inputs, RecordedPool, part
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
    MachineShape,
    Nodes,
    Role,
    Upgrade,
)
from ebbtide.declaration.model.pool_inputs import fields_of
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind

NODE_POOL: Final = "gcp:container/nodePool:NodePool"
CLUSTER: Final = "gcp:container/cluster:Cluster"
FUTURE_RESERVATION: Final = "gcp:compute/futureReservation:FutureReservation"

DEFAULT_MACHINE: Final = "e2-medium"
"""GKE's default machine type (GKE v1 API, NodeConfig.machineType)."""

_DISK_GIB: Final = 100  # GKE v1 API, NodeConfig.diskSizeGb
_DISK_TYPE: Final = "pd-balanced"

_CATALOG: Final[FindMachine] = partial(find_machine, CloudKind.GKE)
_DEFAULT_POOL: Final = ("initialNodeCount", "nodeConfig", "nodeLocations")


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
    own = fields_of(CloudKind.GKE, inputs.value)
    hardware = machine(inputs, find)
    accelerator = _accelerator(inputs, own["accelerator"], hardware)
    capacity = _capacity(inputs, own["capacity"], periods or {})
    zones = own["zones"]
    spread = len(zones or default_zones) or (1 if is_gke_zone(location) else GKE_REGION_ZONES)
    nodes, initial = _nodes(inputs, own["nodes"], spread)
    repels = own["taints"] or accelerator or isinstance(capacity, Queued)
    topology, disk, run = inputs.text("placementPolicy.tpuTopology"), own["disk"], own["capacity"]
    derived: dict[str, Any] = {
        "site": Site(CloudKind.GKE, location),
        "addons": NO_ADDONS,
        "hardware": hardware,
        "name": inputs.text("name"),
        "role": Role.SYSTEM if (nodes.count or nodes.min) and not repels else Role.WORK,
        "machine": own["machine"] or MachineShape.model_construct(type=DEFAULT_MACHINE),
        "accelerator": accelerator,
        "capacity": capacity,
        "nodes": nodes,
        "initial_nodes": initial,
        "disk": Disk.model_construct(size_gib=disk["size_gib"] or _DISK_GIB, type=disk["type"] or _DISK_TYPE),
        "upgrade": part(Upgrade, own["upgrade"]),
        "compact": inputs.text("placementPolicy.type") == "COMPACT" and not topology,
        "gpu_direct": _gpu_direct(inputs),
        "tpu_topology": topology or None,
        "run_limit": PREEMPTIBLE_SECONDS
        if isinstance(capacity, Preemptible)
        else run["max_run_duration"] and int(run["max_run_duration"].total_seconds()),
        "billing": inputs.labels("nodeConfig.resourceLabels"),
    }
    return RecordedPool.model_construct(**own | derived | others)


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


def _accelerator(inputs: Inputs, own: Mapping[str, Any], hardware: Machine | None) -> Accelerator | None:
    """Return the attached accelerators, or else the machine's."""
    if inputs.parts("nodeConfig.guestAccelerators"):
        return Accelerator.model_construct(
            type=own["type"] or "",
            count=own["count"] or 1,
            driver=own["driver"] or "default",
            gpu_partition_size=own["gpu_partition_size"],
            gpu_sharing_config=part(
                GpuSharingConfig, own["gpu_sharing_config"], max_shared_clients_per_gpu=1
            ),
        )
    if hardware is None or not hardware.accelerator:
        return None
    return Accelerator.model_construct(type=hardware.accelerator, count=hardware.accelerator_count)


def _capacity(
    inputs: Inputs, own: Mapping[str, Any], periods: Mapping[str, tuple[datetime, datetime]]
) -> AnyCapacity:
    """Return the capacity type: of the first field that is set."""
    if inputs.flag("queuedProvisioning.enabled"):
        return Queued.model_construct(max_run_duration=own["max_run_duration"])
    if inputs.flag("nodeConfig.flexStart"):
        return FlexStart.model_construct(max_run_duration=own["max_run_duration"])
    if inputs.flag("nodeConfig.spot"):
        return Spot()
    if inputs.flag("nodeConfig.preemptible"):
        return Preemptible()
    if own["affinity"] is None:
        return OnDemand()
    name = inputs.text("nodeConfig.reservationAffinity.values[0]") or None
    begin, end = periods.get(name or "", (None, None))
    return Reservation.model_construct(affinity=own["affinity"], name=name, from_=begin, until=end)


def _nodes(inputs: Inputs, own: Mapping[str, Any], spread: int) -> tuple[Nodes, int | None]:
    """Return totals, and the node count at creation. GKE counts `initialNodeCount`, `nodeCount` and limits
    other than totals per zone."""
    initial = inputs.number("nodeCount")
    if initial is None:
        initial = inputs.number("initialNodeCount")
    total = None if initial is None else initial * spread
    if not inputs.has("autoscaling"):
        return Nodes.model_construct(count=total or 0), total
    if own["max"]:  # a Terraform state has 0 for limits for each zone
        return Nodes.model_construct(min=own["min"] or 0, max=own["max"]), total
    least, most = (inputs.number(f"autoscaling.{name}NodeCount") or 0 for name in ("min", "max"))
    return Nodes.model_construct(min=least * spread, max=most * spread), total
