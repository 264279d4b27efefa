"""GKE node pools: fields of `gcp.container.NodePool` and `gcp.container.Cluster` (pulumi-gcp 10.2).

Automatic properties of nodes follow the GKE documentation (gpus, tpus, provisioningrequest; read 2026).
"""

from collections.abc import Iterator
from typing import Final

from ebbtide.catalog import GKE_REGION_ZONES, PREEMPTIBLE_SECONDS, CloudKind, find_machine, resource_name
from ebbtide.catalog.clouds import is_gke_zone
from ebbtide.placement.gke_marks import QUEUED
from ebbtide.reading.facts import (
    AcceleratorFacts,
    CapacityKind,
    DiskFacts,
    NodeFacts,
    PoolFacts,
    TaintFacts,
)
from ebbtide.reading.inputs import Inputs
from ebbtide.recording.recording import Resource

NODE_POOL: Final = "gcp:container/nodePool:NodePool"
CLUSTER: Final = "gcp:container/cluster:Cluster"

# The first field that is set wins.
_CAPACITY: Final[tuple[tuple[str, CapacityKind], ...]] = (
    ("queuedProvisioning.enabled", "queued"),
    ("nodeConfig.flexStart", "flex-start"),
    ("nodeConfig.spot", "spot"),
    ("nodeConfig.preemptible", "preemptible"),
)
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
        reservation=inputs.text("nodeConfig.reservationAffinity.values[0]"),
        nodes=nodes,
        zones=zones,
        disk=DiskFacts(
            inputs.number("nodeConfig.diskSizeGb") or _DISK.size_gib,
            inputs.text("nodeConfig.diskType") or _DISK.type,
        ),
        labels=inputs.labels("nodeConfig.labels"),
        taints=taints,
        max_run_seconds=PREEMPTIBLE_SECONDS if capacity == "preemptible" else int(limit) if limit else None,
        billing=inputs.labels("nodeConfig.resourceLabels"),
    )


def _accelerator(inputs: Inputs, machine: str) -> AcceleratorFacts | None:
    """Return the attached accelerator, or else the machine type's."""
    for attached in inputs.parts("nodeConfig.guestAccelerators"):
        return AcceleratorFacts(attached.text("type"), attached.number("count") or 1)
    machine_type = find_machine(CloudKind.GKE, machine)
    return (
        AcceleratorFacts(machine_type.accelerator, machine_type.accelerator_count)
        if machine_type and machine_type.accelerator
        else None
    )


def _capacity(inputs: Inputs) -> CapacityKind:
    for path, kind in _CAPACITY:
        if inputs.flag(path):
            return kind
    specific = inputs.text("nodeConfig.reservationAffinity.consumeReservationType") == "SPECIFIC_RESERVATION"
    return "reservation" if specific else "on-demand"


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
        *(TaintFacts(*mark, "NoSchedule", automatic=True) for mark in added if mark not in declared_taints),
    )


def _taint(taint: Inputs) -> TaintFacts:
    effect = taint.text("effect")
    return TaintFacts(taint.text("key"), taint.text("value"), _EFFECTS.get(effect, effect))
