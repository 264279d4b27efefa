"""The node pools of a recording, on any cloud."""

from collections.abc import Iterator
from typing import Any, Final

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import ClusterFacts
from ebbtide.analysis.reading.inputs import Inputs
from ebbtide.analysis.reading.recorded_pool import RecordedPool
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import Plain, leaves
from ebbtide.declaration.catalog import CloudKind, Machine, find_machine
from ebbtide.declaration.model import Accelerator, MachineShape
from ebbtide.declaration.model.resolved_pool import declared_machine


def read_pools(recording: Recording) -> tuple[RecordedPool, ...]:
    """Return every node pool that the program creates, in order of registration, system pools first.

    Existing pools that are only read are omitted: their properties are not recorded.
    """
    return tuple(sorted(_pools(recording), key=lambda pool: not pool.is_system))


def read_clusters(recording: Recording) -> tuple[ClusterFacts, ...]:
    """Return every cluster that the program creates, in order of registration."""
    maintenance = [aks.read_maintenance(resource) for resource in recording.of_type(aks.MAINTENANCE)]
    return tuple(
        cluster.model_copy(
            update={
                "settings": (
                    *cluster.settings,
                    *(words for name, words in maintenance if name == cluster.name),
                ),
                "overrides": dict(leaves(_input(recording[cluster.urn], recording, "overrides"))),
            }
        )
        for cluster in (
            _CLUSTERS[resource.type](resource)
            for resource in recording
            if resource.type in _CLUSTERS and not resource.read
        )
    )


_OF_POOL: Final = ("overrides", "machine")
_OF_CLUSTER: Final = ("poolOverrides", "poolMachine")
"""Inputs of the component of a pool, and of a cluster with a pool, with the pool's declared fields."""

_CLUSTERS: Final = {gke.CLUSTER: gke.read_cluster, aks.CLUSTER: aks.read_cluster}


def _input(resource: Resource, recording: Recording, name: str) -> dict[str, Plain]:
    """Return an input of a resource's component; empty if it has none."""
    parent = recording[resource.parent] if resource.parent else None
    value = parent.inputs.get(name) if parent is not None else None
    return value if isinstance(value, dict) else {}


def _declared(
    resource: Resource, recording: Recording, cloud: CloudKind, overrides: str, machine: str
) -> dict[str, Any]:
    """Return the declared fields of a pool, from its component: overrides of its inputs, and a machine type
    that the catalog lacks."""
    own = declared_machine(cloud, _shape(Inputs(_input(resource, recording, machine))))

    def find(name: str) -> Machine | None:
        return own if own is not None and own.name == name else find_machine(cloud, name)

    return {"overrides": _input(resource, recording, overrides), "find": find}


def _shape(inputs: Inputs) -> MachineShape:
    accelerator = inputs.text("accelerators.type")
    count = inputs.number("accelerators.count") or 1
    return MachineShape.model_construct(
        type=inputs.text("type"),
        vcpus=inputs.number("vcpus"),
        memory_gib=inputs.amount("memoryGib"),
        accelerators=Accelerator.model_construct(type=accelerator, count=count) if accelerator else None,
    )


def _pools(recording: Recording) -> Iterator[RecordedPool]:
    locations = dict(aks.read_location(cluster) for cluster in recording.of_type(aks.CLUSTER))
    for resource in recording:
        if resource.read:
            continue
        match resource.type:
            case gke.NODE_POOL:
                yield gke.read_node_pool(resource, **_declared(resource, recording, CloudKind.GKE, *_OF_POOL))
            case gke.CLUSTER:
                declared = _declared(resource, recording, CloudKind.GKE, *_OF_CLUSTER)
                yield from gke.read_inline_pools(resource, **declared)
            case aks.AGENT_POOL:
                declared = _declared(resource, recording, CloudKind.AKS, *_OF_POOL)
                yield aks.read_agent_pool(resource, locations, **declared)
            case aks.CLUSTER:
                declared = _declared(resource, recording, CloudKind.AKS, *_OF_CLUSTER)
                yield from aks.read_inline_pools(resource, **declared)
            case _:
                pass
