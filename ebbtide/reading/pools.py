"""The node pools of a recording, on any cloud."""

from collections.abc import Iterator
from typing import Final

from ebbtide.reading import aks, gke
from ebbtide.reading.facts import ClusterFacts, PoolFacts
from ebbtide.recording.recording import Plain, Recording, Resource
from ebbtide.recording.values import leaves


def read_pools(recording: Recording) -> tuple[PoolFacts, ...]:
    """Return every node pool that the program creates, in order of registration, system pools first.

    Existing pools that are only read are omitted: their properties are not recorded.
    """
    pools = (_with_overrides(pool, recording) for pool in _pools(recording))
    return tuple(sorted(pools, key=lambda pool: pool.role != "system"))


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
                "overrides": _overrides(recording[cluster.urn], recording, "overrides"),
            }
        )
        for cluster in (
            _CLUSTERS[resource.type](resource)
            for resource in recording
            if resource.type in _CLUSTERS and not resource.read
        )
    )


_CLUSTERS: Final = {gke.CLUSTER: gke.read_cluster, aks.CLUSTER: aks.read_cluster}


def _with_overrides(pool: PoolFacts, recording: Recording) -> PoolFacts:
    resource = recording[pool.urn]
    name = "poolOverrides" if pool.inline else "overrides"
    return pool.model_copy(update={"overrides": _overrides(resource, recording, name)})


def _overrides(resource: Resource, recording: Recording, name: str) -> dict[str, Plain]:
    """Return the declared overrides of a resource by path, from its component."""
    parent = recording[resource.parent] if resource.parent else None
    overrides = parent.inputs.get(name) if parent is not None else None
    return dict(leaves(overrides)) if isinstance(overrides, dict) else {}


def _pools(recording: Recording) -> Iterator[PoolFacts]:
    locations = dict(aks.read_location(cluster) for cluster in recording.of_type(aks.CLUSTER))
    for resource in recording:
        if resource.read:
            continue
        match resource.type:
            case gke.NODE_POOL:
                yield gke.read_node_pool(resource)
            case gke.CLUSTER:
                yield from gke.read_inline_pools(resource)
            case aks.AGENT_POOL:
                pool = aks.read_agent_pool(resource)
                yield pool.model_copy(update={"location": locations.get(pool.cluster, "")})
            case aks.CLUSTER:
                yield from aks.read_inline_pools(resource)
            case _:
                pass
