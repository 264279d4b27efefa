"""AKS node pools: `azure-native.containerservice.AgentPool` and the inline pools of a `ManagedCluster`.

Fields are those of pulumi-azure-native 3.29; AKS's automatic additions follow azure-aks-docs,
`spot-node-pool` (2026).
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.facts import ClusterFacts, FindMachine, Inputs, RecordedPool, part
from ebbtide.analysis.recording.recording import Resource
from ebbtide.declaration.catalog.machines import Machine, find_machine
from ebbtide.declaration.model.capacity import AnyCapacity, OnDemand, Reservation, Spot
from ebbtide.declaration.model.pool import Accelerator, Disk, MachineShape, Nodes, Role, Upgrade
from ebbtide.declaration.model.pool_inputs import fields_of
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind

AGENT_POOL: Final = "azure-native:containerservice:AgentPool"
MAINTENANCE: Final = "azure-native:containerservice:MaintenanceConfiguration"
CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
CAPACITY_RESERVATION: Final = "azure-native:compute:CapacityReservation"

_CATALOG: Final[FindMachine] = partial(find_machine, CloudKind.AKS)


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
    own = fields_of(CloudKind.AKS, inputs.value)
    nodes, initial = _nodes(inputs, own["nodes"])
    machine = own["machine"] or MachineShape.model_construct(type="")
    hardware = find(machine.type)
    derived: dict[str, Any] = {
        "site": Site(CloudKind.AKS, location),
        "addons": NO_ADDONS,
        "hardware": hardware,
        "role": Role.SYSTEM if inputs.text("mode") == "System" else Role.WORK,
        "machine": machine,
        "accelerator": _accelerator(own["accelerator"], hardware),
        "capacity": _capacity(inputs, own["capacity"], reserving),
        "nodes": nodes,
        "initial_nodes": initial,
        "disk": Disk.model_construct(**own["disk"]),
        "upgrade": part(Upgrade, own["upgrade"]),
        "billing": inputs.labels("tags"),
    }
    return RecordedPool.model_construct(**own | derived | others)


def _accelerator(own: Mapping[str, Any], machine: Machine | None) -> Accelerator | None:
    """Return the accelerators of the machine type; the resource has no field for them."""
    if machine is None or not machine.accelerator:
        return None
    return Accelerator.model_construct(
        type=machine.accelerator,
        count=machine.accelerator_count,
        driver=own["driver"] or "default",
        gpu_instance_profile=own["gpu_instance_profile"],
    )


def group_of(inputs: Inputs) -> str:
    """Return resource group and name of the group of a capacity reservation, from its inputs, in lower case:
    Azure compares them without case."""
    return f"{inputs.text('resourceGroupName')}/{inputs.text('capacityReservationGroupName')}".lower()


def _capacity(inputs: Inputs, own: Mapping[str, Any], reserving: Collection[str]) -> AnyCapacity:
    if inputs.text("scaleSetPriority") == "Spot":
        return Spot.model_construct(**own)
    group = inputs.text("capacityReservationGroupID")
    if not group:
        return OnDemand()
    _, _, rest = group.lower().partition("/resourcegroups/")
    named = f"{rest.partition('/')[0]}/{rest.rpartition('/')[2]}"
    return Reservation.model_construct(name=None if named in reserving else group)


def _nodes(inputs: Inputs, own: Mapping[str, Any]) -> tuple[Nodes, int | None]:
    """Return the node counts, and the count at creation."""
    count = inputs.number("count")
    if not inputs.flag("enableAutoScaling"):
        return Nodes.model_construct(count=count or 0), count
    return Nodes.model_construct(min=own["min"] or 0, max=own["max"]), count
