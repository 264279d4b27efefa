"""The node pools of a recording, on any cloud."""

from collections.abc import Iterator
from dataclasses import replace

from ebbtide.reading import aks, gke
from ebbtide.reading.facts import PoolFacts
from ebbtide.recording.recording import Recording


def read_pools(recording: Recording) -> tuple[PoolFacts, ...]:
    """Return every node pool that the program creates, in order of registration, system pools first.

    Existing pools that are only read are omitted: their properties are not recorded.
    """
    return tuple(sorted(_pools(recording), key=lambda pool: pool.role != "system"))


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
                yield replace(pool, location=locations.get(pool.cluster, ""))
            case aks.CLUSTER:
                yield from aks.read_inline_pools(resource)
            case _:
                pass
