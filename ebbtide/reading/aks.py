"""AKS node pools: `azure-native.containerservice.AgentPool` and the inline pools of a `ManagedCluster`.

Fields are those of pulumi-azure-native 3.29; AKS's automatic additions follow azure-aks-docs,
`spot-node-pool` (2026).
"""

from collections.abc import Iterator
from typing import Final

from ebbtide.catalog import CloudKind, Machine, find_machine, partitions
from ebbtide.model.aks_labels_and_taints import SPOT
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

AGENT_POOL: Final = "azure-native:containerservice:AgentPool"
MAINTENANCE: Final = "azure-native:containerservice:MaintenanceConfiguration"
CLUSTER: Final = "azure-native:containerservice:ManagedCluster"

_SPOT_TAINT: Final = TaintFacts(SPOT, "spot", "NoSchedule", automatic=True)


def read_agent_pool(resource: Resource) -> PoolFacts:
    """Read a separate node pool."""
    inputs = Inputs(resource.inputs)
    name, cluster = inputs.text("agentPoolName"), inputs.text("resourceName")
    return _pool(inputs, resource.urn, name, cluster, inline=False)


def read_cluster(resource: Resource) -> ClusterFacts:
    """Read a cluster."""
    inputs = Inputs(resource.inputs)
    return ClusterFacts(
        urn=resource.urn,
        cloud=CloudKind.AKS,
        name=inputs.text("resourceName"),
        location=inputs.text("location"),
        settings=tuple(_settings(inputs)),
    )


def read_maintenance(resource: Resource) -> tuple[str, str]:
    """Return the name of a maintenance configuration's cluster, and a short description of the
    configuration."""
    inputs = Inputs(resource.inputs)
    window = "maintenanceWindow"
    day = inputs.text(f"{window}.schedule.weekly.dayOfWeek") or "every day"
    hours, start = inputs.number(f"{window}.durationHours"), inputs.text(f"{window}.startTime")
    without = [
        f"{span.text('start')} to {span.text('end')}" for span in inputs.parts(f"{window}.notAllowedDates")
    ]
    words = f"{inputs.text('configName')} {day} from {start} UTC for {hours} h"
    return inputs.text("resourceName"), ", not ".join([words, *without])


def _settings(inputs: Inputs) -> Iterator[str]:
    if inputs.flag("apiServerAccessProfile.enablePrivateCluster"):
        yield "control plane reached from its network alone"
    if key := inputs.text("securityProfile.azureKeyVaultKms.keyId"):
        yield f"secrets encrypted with {key}"
    if key := inputs.text("diskEncryptionSetID"):
        yield f"disks encrypted by {key}"


def read_inline_pools(resource: Resource) -> Iterator[PoolFacts]:
    """Read the inline pools of a cluster: AKS creates the system pool with the cluster."""
    inputs = Inputs(resource.inputs)
    cluster, location = inputs.text("resourceName"), inputs.text("location")
    for pool in inputs.parts("agentPoolProfiles"):
        yield _pool(pool, resource.urn, pool.text("name"), cluster, location, inline=True)


def read_location(resource: Resource) -> tuple[str, str]:
    """Return name and region of a cluster; separate pools have no location."""
    inputs = Inputs(resource.inputs)
    return inputs.text("resourceName"), inputs.text("location")


def _pool(
    inputs: Inputs, urn: str, name: str, cluster: str, location: str = "", *, inline: bool
) -> PoolFacts:
    machine = inputs.text("vmSize")
    machine_type = find_machine(CloudKind.AKS, machine)
    capacity = _capacity(inputs)
    price = inputs.amount("spotMaxPrice")
    return PoolFacts(
        urn=urn,
        inline=inline,
        cloud=CloudKind.AKS,
        name=name,
        cluster=cluster,
        location=location,
        role="system" if inputs.text("mode") == "System" else "work",
        machine=machine,
        # Azure's accelerators are part of the machine type; the resource has no field for them.
        accelerator=_accelerator(inputs, machine_type) if machine_type and machine_type.accelerator else None,
        capacity=capacity,
        reservation=inputs.text("capacityReservationGroupID"),
        max_price=price if price is not None and price >= 0 else None,
        nodes=_nodes(inputs),
        zones=inputs.texts("availabilityZones"),
        disk=DiskFacts(inputs.number("osDiskSizeGB") or None, inputs.text("osDiskType").lower() or None),
        local_disks="the temporary disk for ephemeral storage"
        if inputs.text("kubeletDiskType") == "Temporary"
        else "",
        labels=inputs.labels("nodeLabels"),
        taints=_taints(inputs, capacity),
        billing=inputs.labels("tags"),
    )


def _accelerator(inputs: Inputs, machine: Machine) -> AcceleratorFacts:
    profile = inputs.text("gpuInstanceProfile")
    shares = partitions(CloudKind.AKS, machine.accelerator).get(profile, 1)
    count = machine.accelerator_count
    return AcceleratorFacts(machine.accelerator, count, count * shares, profile)


def _capacity(inputs: Inputs) -> CapacityKind:
    if inputs.text("scaleSetPriority") == "Spot":
        return "spot"
    return "reservation" if inputs.text("capacityReservationGroupID") else "on-demand"


def _nodes(inputs: Inputs) -> NodeFacts:
    count = inputs.number("count")
    if not inputs.flag("enableAutoScaling"):
        return NodeFacts(fixed=count or 0, at_birth=count)
    return NodeFacts(inputs.number("minCount") or 0, inputs.number("maxCount"), None, count)


def _taints(inputs: Inputs, capacity: CapacityKind) -> tuple[TaintFacts, ...]:
    """Return declared taints (`key=value:effect`), and the spot taint, which AKS adds if missing."""
    taints = tuple(_taint(text) for text in inputs.texts("nodeTaints"))
    has_spot = any(taint.key == SPOT for taint in taints)
    return taints if capacity != "spot" or has_spot else (*taints, _SPOT_TAINT)


def _taint(text: str) -> TaintFacts:
    taint, _, effect = text.rpartition(":")
    key, _, value = taint.partition("=")
    return TaintFacts(key, value, effect)
