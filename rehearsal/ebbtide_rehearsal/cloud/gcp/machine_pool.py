"""Conversion of a GKE node pool to the node pool of the controllers."""

import re
from dataclasses import replace
from typing import Final

from ebbtide.catalog import (
    LOCAL_SSD_GIB,
    PREEMPTIBLE_SECONDS,
    CloudKind,
    Machine,
    chips_of,
    find_machine,
    is_tpu,
    partitions,
    resource_name,
)
from ebbtide.catalog.clouds import region_of
from ebbtide.reading.facts import CapacityKind
from ebbtide.reading.gke import RESERVED
from ebbtide.reading.inputs import Inputs
from ebbtide_rehearsal.cloud.gcp.labels_and_taints import added_labels, added_taints, declared_taints
from ebbtide_rehearsal.cloud.gcp.prices import boot_disk, hourly
from ebbtide_rehearsal.cloud.gcp.request import GoogleCloud, Request, inputs_of
from ebbtide_rehearsal.cloud.nodes.machines import machines
from ebbtide_rehearsal.cloud.pools import NodePool
from ebbtide_rehearsal.cloud.store import Resource

DEFAULT_MACHINE: Final = "e2-medium"
"""GKE's default machine type (GKE v1 API, NodeConfig.machineType)."""

_CUSTOM: Final = re.compile(r"^(?:(?P<family>[a-z0-9]+)-)?custom-(?P<vcpus>\d+)-(?P<mib>\d+)(?:-ext)?$")
_MIB: Final = 1024
_SSD: Final = {"pd-balanced", "pd-ssd"}
"""Disk types that count towards `SSD_TOTAL_GB` (Compute Engine docs, allocation-quotas, 2026)."""

_SYSTEM_OF_SSDS: Final = {1: 50, 2: 75}
_SECONDS: Final = re.compile(r"^(\d+)(?:\.\d+)?s$")

# The first field that exists determines the capacity kind.
_CAPACITIES: Final[tuple[tuple[str, CapacityKind], ...]] = (
    ("queuedProvisioning.enabled", "queued"),
    ("nodeConfig.flexStart", "flex-start"),
    ("nodeConfig.spot", "spot"),
    ("nodeConfig.preemptible", "preemptible"),
)


def machine_of(fields: Inputs) -> Machine | None:
    """Return the machine type of a pool, from the catalog or parsed from a custom type's name; None if
    unknown."""
    name = fields.text("nodeConfig.machineType") or DEFAULT_MACHINE
    machine = find_machine(CloudKind.GKE, name)
    custom = _CUSTOM.match(name)
    if machine is None and custom is not None:
        family = custom["family"] or "n1"
        gib = int(custom["mib"]) / _MIB
        machine = Machine(CloudKind.GKE, name, int(custom["vcpus"]), gib, family, attachable=family == "n1")
    threads = fields.number("nodeConfig.advancedMachineFeatures.threadsPerCore")
    return replace(machine, threads_per_core=threads) if machine and threads else machine


def capacity_of(fields: Inputs) -> CapacityKind:
    """Return the capacity kind of a pool's nodes."""
    for path, kind in _CAPACITIES:
        if fields.flag(path):
            return kind
    affinity = fields.text("nodeConfig.reservationAffinity.consumeReservationType")
    return "reservation" if affinity in RESERVED else "on-demand"


def accelerator_of(fields: Inputs, machine: Machine) -> tuple[str, int] | None:
    """Return type and count of each node's accelerators, attached or else built-in."""
    for attached in fields.parts("nodeConfig.guestAccelerators"):
        return attached.text("type"), attached.number("count") or 1
    return (machine.accelerator, machine.accelerator_count) if machine.accelerator else None


def seconds_of(text: str) -> int | None:
    """Parse a duration such as `3600s`; None if malformed."""
    match = _SECONDS.match(text)
    return int(match[1]) if match else None


def zones_in(fields: Inputs, cluster_zones: tuple[str, ...]) -> tuple[str, ...]:
    """Return the zones in which a pool has nodes."""
    return fields.texts("nodeLocations") or cluster_zones


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
    machine = machine_of(fields)
    if machine is None:
        raise LookupError(fields.text("nodeConfig.machineType"))
    zones = zones_in(fields, cluster_zones)
    capacity = capacity_of(fields)
    accelerator = accelerator_of(fields, machine)
    minimum, maximum, initial, autoscaled = _nodes(fields, node_count(request), len(zones))
    return NodePool(
        cluster=cluster,
        name=request.name,
        cloud="gke",
        machine=machine.name,
        capacity=capacity,
        region=region_of(zones[0]),
        zones=zones,
        labels={
            **added_labels(fields, machine, capacity, accelerator, zones),
            **fields.labels("nodeConfig.labels"),
        },
        taints=(*declared_taints(fields), *added_taints(fields, machine, capacity, accelerator)),
        allocatable={
            "cpu": f"{int(machine.allocatable.cpu_m)}m",
            "memory": f"{int(machine.allocatable.memory_mib)}Mi",
            "pods": str(fields.number("maxPodsPerNode") or _PODS),
            "ephemeral-storage": f"{ephemeral_gib(fields)}Gi",
        },
        accelerator=accelerator,
        accelerator_resource=resource_name(accelerator[0]) if accelerator else "",
        driver_installed=accelerator is not None and _installs_driver(fields),
        shares=_shares(fields),
        together=slice_nodes(fields, machine),
        minimum=minimum,
        maximum=maximum,
        initial=initial,
        autoscaled=autoscaled,
        hourly=hourly(fields, machine, accelerator, capacity, zones[0]),
        max_run_seconds=PREEMPTIBLE_SECONDS
        if capacity == "preemptible"
        else seconds_of(fields.text("nodeConfig.maxRunDuration")) or _longest(capacity),
        ssd_gb=_ssd_gb(fields),
    )


def _ssd_gb(fields: Inputs) -> int:
    kind, size = boot_disk(fields)
    return size if kind in _SSD else 0


_PODS: Final = 110  # GKE docs, flexible-pod-cidr (2026)


def _longest(capacity: CapacityKind) -> int | None:
    """Return the default maximum run duration: seven days for flex-start nodes (GKE docs,
    dws-flex-start-training)."""
    return 7 * 24 * 3600 if capacity in ("flex-start", "queued") else None


def slice_nodes(fields: Inputs, machine: Machine) -> int:
    """Return the number of nodes of a TPU slice (GKE docs, plan-tpus, 2026)."""
    topology = fields.text("placementPolicy.tpuTopology")
    if not topology or not is_tpu(machine.accelerator):
        return 1
    return max(1, chips_of(topology) // machine.accelerator_count)


def ephemeral_gib(fields: Inputs) -> int:
    """Return the allocatable ephemeral storage of a node, GiB: its boot disk or local SSDs, less the eviction
    threshold and the system's reservation (GKE docs, plan-node-sizes, 2026)."""
    disks = fields.number("nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount")
    if disks:
        size = float(disks * LOCAL_SSD_GIB)
        system = float(_SYSTEM_OF_SSDS.get(disks, 100))
    else:
        size = float(boot_disk(fields)[1])
        system = min(0.5 * size, 6 + 0.35 * size, 100)
    return max(0, int(0.9 * size - system))


def _shares(fields: Inputs) -> int:
    """Return a GPU's partitions times the containers per partition (GKE docs, timesharing-gpus)."""
    for attached in fields.parts("nodeConfig.guestAccelerators"):
        sizes = partitions(CloudKind.GKE, attached.text("type"))
        clients = attached.number("gpuSharingConfig.maxSharedClientsPerGpu") or 1
        return sizes.get(attached.text("gpuPartitionSize"), 1) * clients
    return 1


def _installs_driver(fields: Inputs) -> bool:
    """Return whether GKE installs the driver: by default from 1.32.2-gke.1297000 (GKE docs, gpus)."""
    for attached in fields.parts("nodeConfig.guestAccelerators"):
        return attached.text("gpuDriverInstallationConfig.gpuDriverVersion") != "INSTALLATION_DISABLED"
    return True


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


def _nodes(fields: Inputs, initial: int, zones: int) -> tuple[int, int, int, bool]:
    """Return the minimum, maximum and initial number of nodes, and whether they are autoscaled. GKE counts
    initial nodes, and limits other than total ones, per zone."""
    if not fields.has("autoscaling"):
        return initial * zones, initial * zones, initial * zones, False
    total = fields.number("autoscaling.totalMaxNodeCount")
    if total is not None:
        return fields.number("autoscaling.totalMinNodeCount") or 0, total, initial * zones, True
    least, most = (
        fields.number("autoscaling.minNodeCount") or 0,
        fields.number("autoscaling.maxNodeCount") or 0,
    )
    return least * zones, most * zones, initial * zones, True
