"""GKE node pools: fields of `gcp.container.NodePool` and `gcp.container.Cluster` (pulumi-gcp 10.2).

Automatic properties of nodes follow the GKE documentation (gpus, tpus, provisioningrequest; read 2026).
"""

from collections.abc import Iterator
from typing import Final

from ebbtide.catalog import (
    GKE_REGION_ZONES,
    PREEMPTIBLE_SECONDS,
    CloudKind,
    find_machine,
    partitions,
    resource_name,
)
from ebbtide.catalog.clouds import is_gke_zone
from ebbtide.model.gke_labels_and_taints import QUEUED
from ebbtide.reading.facts import (
    AcceleratorFacts,
    CapacityKind,
    ClusterFacts,
    DiskFacts,
    NodeFacts,
    PoolFacts,
    TaintFacts,
)
from ebbtide.reading.inputs import Inputs
from ebbtide.recording.recording import Resource
from ebbtide.wording import several

NODE_POOL: Final = "gcp:container/nodePool:NodePool"
CLUSTER: Final = "gcp:container/cluster:Cluster"

# The first field that is set takes precedence.
_CAPACITY: Final[tuple[tuple[str, CapacityKind], ...]] = (
    ("queuedProvisioning.enabled", "queued"),
    ("nodeConfig.flexStart", "flex-start"),
    ("nodeConfig.spot", "spot"),
    ("nodeConfig.preemptible", "preemptible"),
)
RESERVED: Final = {
    "SPECIFIC_RESERVATION": "",
    "ANY_RESERVATION": "any",
    "ANY_RESERVATION_THEN_FAIL": "any, and no other machines",
}
"""Reservation affinities, each with the description of a reservation without a name."""

_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
# GKE's defaults (container API, NodeConfig).
_MACHINE: Final = "e2-medium"
_DISK: Final = DiskFacts(100, "pd-balanced")


def read_node_pool(resource: Resource) -> PoolFacts:
    """Read a separate node pool."""
    inputs = Inputs(resource.inputs)
    cluster = inputs.text("cluster").rpartition("/")[2]
    return _pool(inputs, resource.urn, cluster, inputs.text("location"), inline=False)


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
        yield f"{exclusion.text('exclusionOptions.scope')} from {start} until {end}"
    if key := inputs.text("databaseEncryption.keyName"):
        yield f"secrets encrypted with {key}"
    if key := inputs.text("nodeConfig.bootDiskKmsKey"):
        yield f"boot disks encrypted with {key}"


def read_inline_pools(resource: Resource) -> Iterator[PoolFacts]:
    """Read the inline pools of a cluster: those listed in it, or the default pool if it is kept."""
    inputs = Inputs(resource.inputs)
    name, location = inputs.text("name"), inputs.text("location")
    if inputs.flag("enableAutopilot") or inputs.flag("removeDefaultNodePool"):
        return
    listed = inputs.parts("nodePools")
    for pool in listed:
        yield _pool(pool, resource.urn, name, location, inline=True)
    if not listed:
        pool = Inputs({key: resource.inputs[key] for key in _DEFAULT_POOL if key in resource.inputs})
        yield _pool(pool, resource.urn, name, location, inline=True, default_name="default-pool")


_DEFAULT_POOL: Final = ("initialNodeCount", "nodeConfig", "nodeLocations")


def _pool(
    inputs: Inputs, urn: str, cluster: str, location: str, *, inline: bool, default_name: str = ""
) -> PoolFacts:
    machine = inputs.text("nodeConfig.machineType") or _MACHINE
    accelerator = _accelerator(inputs, machine)
    capacity = _capacity(inputs)
    taints = _taints(inputs, accelerator, capacity)
    zones = inputs.texts("nodeLocations")
    spread = len(zones) or (1 if is_gke_zone(location) else GKE_REGION_ZONES)
    nodes = _nodes(inputs, spread)
    limit = inputs.text("nodeConfig.maxRunDuration").removesuffix("s")
    return PoolFacts(
        urn=urn,
        inline=inline,
        cloud=CloudKind.GKE,
        name=inputs.text("name") or default_name,
        cluster=cluster,
        location=location,
        role="system" if nodes.idle and not taints else "work",
        machine=machine,
        accelerator=accelerator,
        capacity=capacity,
        reservation=inputs.text("nodeConfig.reservationAffinity.values[0]")
        or RESERVED.get(_reserved(inputs), ""),
        nodes=nodes,
        zones=zones,
        disk=DiskFacts(
            inputs.number("nodeConfig.diskSizeGb") or _DISK.size_gib,
            inputs.text("nodeConfig.diskType") or _DISK.type,
        ),
        local_disks=_local_disks(inputs),
        settings=tuple(_node_settings(inputs)),
        labels=inputs.labels("nodeConfig.labels"),
        taints=taints,
        max_run_seconds=PREEMPTIBLE_SECONDS if capacity == "preemptible" else int(limit) if limit else None,
        billing=inputs.labels("nodeConfig.resourceLabels"),
        network_tags=inputs.texts("nodeConfig.tags"),
    )


def _accelerator(inputs: Inputs, machine: str) -> AcceleratorFacts | None:
    """Return the attached accelerator, or else the machine type's."""
    for attached in inputs.parts("nodeConfig.guestAccelerators"):
        count, (sharing, shares) = attached.number("count") or 1, _sharing(attached)
        return AcceleratorFacts(attached.text("type"), count, count * shares, sharing)
    machine_type = find_machine(CloudKind.GKE, machine)
    if machine_type is None or not machine_type.accelerator:
        return None
    topology = inputs.text("placementPolicy.tpuTopology")
    count = machine_type.accelerator_count
    return AcceleratorFacts(machine_type.accelerator, count, count, topology=topology)


def _sharing(attached: Inputs) -> tuple[str, int]:
    """Return the partitioning and sharing of GPUs in words, and the `nvidia.com/gpu` count of each GPU."""
    size = attached.text("gpuPartitionSize")
    divided = partitions(CloudKind.GKE, attached.text("type")).get(size, 1)
    clients = attached.number("gpuSharingConfig.maxSharedClientsPerGpu") or 1
    strategy = attached.text("gpuSharingConfig.gpuSharingStrategy").lower().replace("_", "-")
    words = [size, f"{strategy} by {clients}" if strategy else ""]
    return ", ".join(filter(None, words)), divided * clients


def _capacity(inputs: Inputs) -> CapacityKind:
    for path, kind in _CAPACITY:
        if inputs.flag(path):
            return kind
    return "reservation" if _reserved(inputs) in RESERVED else "on-demand"


def _local_disks(inputs: Inputs) -> str:
    uses = {
        "ephemeralStorageLocalSsdConfig": "for ephemeral storage",
        "localNvmeSsdBlockConfig": "as block devices",
    }
    counts = {use: inputs.number(f"nodeConfig.{field}.localSsdCount") for field, use in uses.items()}
    return ", ".join(f"{several(count, 'local SSD')} {use}" for use, count in counts.items() if count)


def _node_settings(inputs: Inputs) -> Iterator[str]:
    if inputs.text("placementPolicy.type") == "COMPACT" and not inputs.text("placementPolicy.tpuTopology"):
        yield "compact placement"
    if inputs.flag("nodeConfig.gvnic.enabled"):
        yield "gVNIC"
    if inputs.flag("nodeConfig.gcfsConfig.enabled"):
        yield "image streaming"
    for disk in inputs.parts("nodeConfig.secondaryBootDisks"):
        content = "images" if disk.text("mode") == "CONTAINER_IMAGE_CACHE" else "data"
        yield f"preloaded {content} of {disk.text('diskImage').rpartition('/')[2]}"


def _reserved(inputs: Inputs) -> str:
    return inputs.text("nodeConfig.reservationAffinity.consumeReservationType")


def _nodes(inputs: Inputs, spread: int) -> NodeFacts:
    """Return totals. GKE counts `initialNodeCount`, `nodeCount` and limits other than totals per zone."""
    initial = inputs.number("nodeCount")
    if initial is None:
        initial = inputs.number("initialNodeCount")
    at_birth = None if initial is None else initial * spread
    if not inputs.has("autoscaling"):
        return NodeFacts(fixed=at_birth or 0, at_birth=at_birth)
    total = inputs.number("autoscaling.totalMaxNodeCount")
    if total is not None:
        return NodeFacts(inputs.number("autoscaling.totalMinNodeCount") or 0, total, None, at_birth)
    low = inputs.number("autoscaling.minNodeCount") or 0
    high = inputs.number("autoscaling.maxNodeCount") or 0
    return NodeFacts(low * spread, high * spread, None, at_birth)


def _taints(
    inputs: Inputs, accelerator: AcceleratorFacts | None, capacity: CapacityKind
) -> tuple[TaintFacts, ...]:
    """Return declared taints and GKE's additions for queued nodes and nodes with accelerators."""
    declared = [_taint(taint) for taint in inputs.parts("nodeConfig.taints")]
    added: list[tuple[str, str]] = []
    if capacity == "queued":
        added.append((QUEUED, "true"))
    if accelerator is not None:
        added.append((resource_name(accelerator.type), "present"))
    declared_taints = {(taint.key, taint.value) for taint in declared}
    return (
        *declared,
        *(
            TaintFacts(*taint, "NoSchedule", automatic=True)
            for taint in added
            if taint not in declared_taints
        ),
    )


def _taint(taint: Inputs) -> TaintFacts:
    effect = taint.text("effect")
    return TaintFacts(taint.text("key"), taint.text("value"), _EFFECTS.get(effect, effect))
