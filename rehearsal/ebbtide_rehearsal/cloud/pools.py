"""Node pools, their machines and the settings of the autoscaler in the fake cloud's store; and regions, zones
and machine types of the clouds: the catalog's, and those of the stack's declaration."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.autoscaler.nodes import Autoscaling, Machine, NodePool
from ebbtide.declaration.catalog import machines as catalog
from ebbtide.declaration.catalog.accelerators import resource_name
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.model.site import Region
from ebbtide.placement import NodeTaint
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.store import Resource, Store

_CLOUD: Final = "nodes"
_SETTINGS: Final = "autoscaler"
_POOL: Final = "node-pool"
_STOPPED: Final = "stopped-node-pool"
_MACHINE: Final = "machine"
REGIONS: Final = "regions"
"""Cloud of regions in the store; they exist independently of stacks."""
_REGION: Final = "rehearsal:region"
_MACHINE_TYPE: Final = "rehearsal:machine"


def put_settings(store: Store, cluster: str, autoscaling: Autoscaling) -> None:
    """Set the autoscaler's settings for a cluster."""
    store.put(Resource(_CLOUD, _id(cluster), _SETTINGS, state=asdict(autoscaling)))


def delete_settings(store: Store, cluster: str) -> None:
    """Delete the settings of a deleted cluster."""
    store.remove(_CLOUD, _id(cluster))


def settings_of(store: Store, cluster: str) -> Autoscaling:
    """Return the settings of a cluster's autoscaler; the defaults if none were set."""
    resource = store.get(_CLOUD, _id(cluster))
    return Autoscaling(**resource.state) if resource else Autoscaling()


def _id(cluster: str) -> str:
    return f"{cluster}/autoscaler"


def node_pool(
    pool: RecordedPool,
    *,
    cluster: str,
    region: str,
    zones: tuple[str, ...],
    initial: int,
    default_run_seconds: int | None = None,
    **others: Any,
) -> NodePool:
    """Return a recorded pool for the controllers of nodes.

    Args:
        initial: initial node count, over all zones.
        default_run_seconds: maximum lifetime of a node of a pool without its own; None for no limit.
        others: what the cloud decides: labels, taints, allocatable resources, prices, drivers.
    """
    accelerator = (pool.accelerator.type, pool.accelerator.count) if pool.accelerator else None
    autoscaled = pool.nodes.count is None
    return NodePool(
        cluster=cluster,
        name=pool.name,
        cloud=pool.site.cloud.value,
        machine=pool.machine_type,
        capacity=pool.capacity.kind,
        region=region,
        zones=zones,
        accelerator=accelerator,
        accelerator_resource=resource_name(accelerator[0]) if accelerator else "",
        minimum=pool.idle_nodes if autoscaled else initial,
        maximum=pool.max_nodes if autoscaled else initial,
        initial=initial,
        autoscaled=autoscaled,
        shares=pool.shares,
        together=pool.slice_nodes,
        max_run_seconds=pool.max_run_seconds or default_run_seconds,
        **others,
    )


def register(store: Store, pool: NodePool) -> None:
    """Register a node pool with the controllers, or update it."""
    store.put(Resource(_CLOUD, pool.id, _POOL, state=asdict(pool)))


def forget(store: Store, cluster: str, name: str) -> None:
    """Remove a node pool: its nodes are drained and removed."""
    store.remove(_CLOUD, f"{cluster}/{name}")


def stop(store: Store, cluster: str) -> None:
    """Remove the nodes of all pools of a cluster, until `start`."""
    for pool in pools(store, cluster):
        store.put(Resource(_CLOUD, f"{pool.id}/stopped", _STOPPED, state=asdict(pool)))
        forget(store, cluster, pool.name)


def is_stopped(store: Store, cluster: str) -> bool:
    """Return whether a cluster is stopped, including its control plane."""
    return any(_pool(resource.state).cluster == cluster for resource in store.resources(_CLOUD, _STOPPED))


def start(store: Store, cluster: str) -> None:
    """Restart the pools of a stopped cluster with their initial nodes."""
    for resource in store.resources(_CLOUD, _STOPPED):
        pool = _pool(resource.state)
        if pool.cluster == cluster:
            store.remove(_CLOUD, resource.id)
            register(store, pool)


def pools(store: Store, cluster: str) -> list[NodePool]:
    """Return the node pools of a cluster, by name."""
    return [pool for pool in all_pools(store) if pool.cluster == cluster]


def all_pools(store: Store) -> list[NodePool]:
    """Return the node pools of all clusters, by id."""
    return [_pool(resource.state) for resource in store.resources(_CLOUD, _POOL)]


def _pool(state: Mapping[str, Any]) -> NodePool:
    read: dict[str, Any] = {
        **state,
        "zones": tuple(state["zones"]),
        "taints": tuple(NodeTaint(**taint) for taint in state["taints"]),
        "accelerator": tuple(state["accelerator"]) if state["accelerator"] else None,
        "reserved": tuple(state["reserved"]) if state["reserved"] else None,
    }
    return NodePool(**read)


def put(store: Store, machine: Machine) -> None:
    """Save a machine."""
    store.put(Resource(_CLOUD, machine.id, _MACHINE, state=asdict(machine)))


def drop(store: Store, machine: Machine) -> None:
    """Delete a machine."""
    store.remove(_CLOUD, machine.id)


def machines(store: Store, cluster: str) -> list[Machine]:
    """Return the machines of a cluster, by name."""
    return [machine for machine in all_machines(store) if machine.cluster == cluster]


def all_machines(store: Store) -> list[Machine]:
    """Return the machines of all clusters, by id."""
    return [Machine(**resource.state) for resource in store.resources(_CLOUD, _MACHINE)]


def add_regions(store: Store, cloud: CloudKind, regions: Iterable[Region]) -> None:
    """Add regions, zones and hardware to those of the catalog."""
    for number, region in enumerate(regions):
        state = region.model_dump(mode="json")
        store.put(Resource(REGIONS, f"{cloud}/{region.name}/{number}", _REGION, state=state))


def locations(store: Store, cloud: CloudKind) -> Locations:
    """Return the regions and zones of a cloud."""
    added = (
        resource.state
        for resource in store.resources(REGIONS, _REGION)
        if resource.id.startswith(f"{cloud}/")
    )
    return Locations(cloud, [Region.model_validate(state) for state in added])


def add_machines(store: Store, machines: Iterable[catalog.Machine]) -> None:
    """Add machine types to those of the catalog."""
    for machine in machines:
        identity = f"{machine.cloud}/machines/{machine.name}"
        store.put(Resource(REGIONS, identity, _MACHINE_TYPE, state=asdict(machine)))


def machine_of(store: Store, cloud: CloudKind, name: str) -> catalog.Machine | None:
    """Return the machine type of a cloud with that name, for which Azure ignores case; None if it has
    none."""
    name = catalog.spelled(name)
    if known := catalog.find_machine(cloud, name):
        return known
    added = store.get(REGIONS, f"{cloud}/machines/{name}")
    return replace(catalog.Machine(**added.state), cloud=cloud) if added else None
