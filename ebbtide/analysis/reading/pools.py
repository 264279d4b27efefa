"""The node pools of a recording, on any cloud."""

from collections.abc import Iterator
from typing import Final

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import ClusterFacts
from ebbtide.analysis.reading.recorded_pool import RecordedPool
from ebbtide.analysis.recording.recording import Plain, Recording, Resource
from ebbtide.analysis.recording.values import leaves


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
                "overrides": dict(leaves(_overrides(recording[cluster.urn], recording, "overrides"))),
            }
        )
        for cluster in (
            _CLUSTERS[resource.type](resource)
            for resource in recording
            if resource.type in _CLUSTERS and not resource.read
        )
    )


_CLUSTERS: Final = {gke.CLUSTER: gke.read_cluster, aks.CLUSTER: aks.read_cluster}


def _overrides(resource: Resource, recording: Recording, name: str) -> dict[str, Plain]:
    """Return the declared overrides of a resource, from its component."""
    parent = recording[resource.parent] if resource.parent else None
    overrides = parent.inputs.get(name) if parent is not None else None
    return overrides if isinstance(overrides, dict) else {}


def _pools(recording: Recording) -> Iterator[RecordedPool]:
    locations = dict(aks.read_location(cluster) for cluster in recording.of_type(aks.CLUSTER))
    for resource in recording:
        if resource.read:
            continue
        match resource.type:
            case gke.NODE_POOL:
                yield gke.read_node_pool(resource, _overrides(resource, recording, "overrides"))
            case gke.CLUSTER:
                yield from gke.read_inline_pools(resource, _overrides(resource, recording, "poolOverrides"))
            case aks.AGENT_POOL:
                overrides = _overrides(resource, recording, "overrides")
                yield aks.read_agent_pool(resource, locations, overrides)
            case aks.CLUSTER:
                yield from aks.read_inline_pools(resource, _overrides(resource, recording, "poolOverrides"))
            case _:
                pass
