"""AKS node pools: `azure-native.containerservice.AgentPool` and the inline pools of a `ManagedCluster`.

Fields are those of pulumi-azure-native 3.29; AKS's automatic additions follow azure-aks-docs,
`spot-node-pool` (2026).
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.facts import ClusterFacts, FindMachine, Inputs, RecordedPool
from ebbtide.analysis.recording.recording import Resource
from ebbtide.declaration.catalog.machines import Machine, find_machine, spelled
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.capacity import AnyCapacity, OnDemand, Reservation, Spot
from ebbtide.declaration.model.pool import (
    Accelerator,
    Disk,
    MachineShape,
    Nodes,
    Role,
    Taint,
    TaintEffect,
    Upgrade,
)
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.site import Site

AGENT_POOL: Final = "azure-native:containerservice:AgentPool"
MAINTENANCE: Final = "azure-native:containerservice:MaintenanceConfiguration"
CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
CAPACITY_RESERVATION: Final = "azure-native:compute:CapacityReservation"

_CATALOG: Final[FindMachine] = partial(find_machine, CloudKind.AKS)
_EFFECTS: Final = {effect.value: effect for effect in TaintEffect}
_IMAGES: Final = {"Ubuntu": "ubuntu", "AzureLinux": "azure-linux"}


def read_agent_pool(
    resource: Resource, locations: Mapping[str, str], elsewhere: str = "", **declared: Any
) -> RecordedPool:
    """Read a separate node pool.

    Args:
        locations: regions of the recorded clusters, by name.
        elsewhere: region of a cluster that is not recorded, since it exists already.
        declared: the fields that its component declares.
    """
    inputs = Inputs(resource.inputs)
    cluster = inputs.text("resourceName")
    return read_pool(
        inputs,
        locations.get(cluster, elsewhere),
        name=inputs.text("agentPoolName"),
        cluster=cluster,
        urn=resource.urn,
        **declared,
    )


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


def read_inline_pools(resource: Resource, **declared: Any) -> Iterator[RecordedPool]:
    """Read the inline pools of a cluster, which has the system pool from its creation, with the fields that
    its component declares."""
    inputs = Inputs(resource.inputs)
    for pool in inputs.parts("agentPoolProfiles"):
        yield read_pool(
            pool,
            inputs.text("location"),
            name=pool.text("name"),
            cluster=inputs.text("resourceName"),
            urn=resource.urn,
            inline=True,
            **declared,
        )


def read_location(resource: Resource) -> tuple[str, str]:
    """Return name and region of a cluster; separate pools have no location."""
    inputs = Inputs(resource.inputs)
    return inputs.text("resourceName"), inputs.text("location")


def read_pool(
    inputs: Inputs,
    location: str,
    *,
    find: FindMachine = _CATALOG,
    reserving: Collection[str] = (),
    **others: Any,
) -> RecordedPool:
    """Read a pool from its inputs.

    Args:
        inputs: its inputs, or those of its part of the cluster.
        location: region of its cluster.
        find: returns the machine type of a name.
        reserving: capacity reservation groups whose reservations are recorded (`group_of`).
        others: the fields of `RecordedPool` that other resources have.
    """
    nodes, initial = _nodes(inputs)
    machine = spelled(inputs.text("vmSize"))
    hardware = find(machine)
    return RecordedPool.model_construct(
        site=Site(CloudKind.AKS, location),
        addons=NO_ADDONS,
        hardware=hardware,
        role=Role.SYSTEM if inputs.text("mode") == "System" else Role.WORK,
        machine=MachineShape.model_construct(type=machine),
        accelerator=_accelerator(inputs, hardware),
        capacity=_capacity(inputs, reserving),
        nodes=nodes,
        initial_nodes=initial,
        zones=inputs.texts("availabilityZones"),
        disk=Disk.model_construct(
            size_gib=inputs.number("osDiskSizeGB") or None,
            type=inputs.text("osDiskType").lower() or None,
            kubelet_disk_type=inputs.text("kubeletDiskType") or None,
        ),
        image=_IMAGES.get(inputs.text("osSKU")),
        upgrade=_upgrade(inputs),
        max_pods_per_node=inputs.number("maxPods"),
        labels=inputs.labels("nodeLabels"),
        taints=tuple(map(_taint, inputs.texts("nodeTaints"))),
        billing=inputs.labels("tags"),
        **others,
    )


def _accelerator(inputs: Inputs, machine: Machine | None) -> Accelerator | None:
    """Return the accelerators of the machine type; the resource has no field for them."""
    if machine is None or not machine.accelerator:
        return None
    return Accelerator.model_construct(
        type=machine.accelerator,
        count=machine.accelerator_count,
        driver="none" if inputs.text("gpuProfile.driver") == "None" else "default",
        gpu_instance_profile=inputs.text("gpuInstanceProfile") or None,
    )


def group_of(inputs: Inputs) -> str:
    """Return resource group and name of the group of a capacity reservation, from its inputs, in lower case:
    Azure compares them without case."""
    return f"{inputs.text('resourceGroupName')}/{inputs.text('capacityReservationGroupName')}".lower()


def _capacity(inputs: Inputs, reserving: Collection[str]) -> AnyCapacity:
    if inputs.text("scaleSetPriority") == "Spot":
        price = inputs.amount("spotMaxPrice")
        return Spot.model_construct(
            eviction_policy=inputs.text("scaleSetEvictionPolicy") or None,
            max_price=price if price is not None and price >= 0 else None,
        )
    group = inputs.text("capacityReservationGroupID")
    if not group:
        return OnDemand()
    _, _, rest = group.lower().partition("/resourcegroups/")
    own = f"{rest.partition('/')[0]}/{rest.rpartition('/')[2]}"
    return Reservation.model_construct(name=None if own in reserving else group)


def _nodes(inputs: Inputs) -> tuple[Nodes, int | None]:
    """Return the node counts, and the count at creation."""
    count = inputs.number("count")
    if not inputs.flag("enableAutoScaling"):
        return Nodes.model_construct(count=count or 0), count
    return Nodes.model_construct(min=inputs.number("minCount") or 0, max=inputs.number("maxCount")), count


def _upgrade(inputs: Inputs) -> Upgrade | None:
    """Return the upgrade settings, a number or a share of the nodes each."""
    texts = (inputs.text(f"upgradeSettings.max{name}") for name in ("Surge", "Unavailable"))
    surge, unavailable = (int(text) if text.isdecimal() else text or None for text in texts)
    if surge is None and unavailable is None:
        return None
    return Upgrade.model_construct(max_surge=surge, max_unavailable=unavailable)


def _taint(text: str) -> Taint:
    """Parse a taint as AKS spells it, `key=value:effect`."""
    taint, _, effect = text.rpartition(":")
    key, _, value = taint.partition("=")
    return Taint.model_construct(key=key, value=value, effect=_EFFECTS.get(effect, effect))
