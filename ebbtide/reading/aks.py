"""AKS node pools: `azure-native.containerservice.AgentPool` and the inline pools of a `ManagedCluster`.

Fields are those of pulumi-azure-native 3.29; AKS's automatic additions follow azure-aks-docs,
`spot-node-pool` (2026).
"""

from collections.abc import Iterator
from typing import Final

from ebbtide.catalog import CloudKind, find_machine
from ebbtide.placement.aks_marks import SPOT
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

AGENT_POOL: Final = "azure-native:containerservice:AgentPool"
CLUSTER: Final = "azure-native:containerservice:ManagedCluster"

_SPOT_TAINT: Final = TaintFacts(SPOT, "spot", "NoSchedule", automatic=True)


def read_agent_pool(resource: Resource) -> PoolFacts:
    """Read a separate node pool."""
    inputs = Inputs(resource.inputs)
    name, cluster = inputs.text("agentPoolName"), inputs.text("resourceName")
    return _pool(inputs, resource.urn, name, cluster, inline=False)


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
        accelerator=AcceleratorFacts(machine_type.accelerator, machine_type.accelerator_count)
        if machine_type and machine_type.accelerator
        else None,
        capacity=capacity,
        reservation=inputs.text("capacityReservationGroupID"),
        max_price=price if price is not None and price >= 0 else None,
        nodes=_nodes(inputs),
        zones=inputs.texts("availabilityZones"),
        disk=DiskFacts(inputs.number("osDiskSizeGB") or None, inputs.text("osDiskType").lower() or None),
        labels=inputs.labels("nodeLabels"),
        taints=_taints(inputs, capacity),
        billing=inputs.labels("tags"),
    )


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
