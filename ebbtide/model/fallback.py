"""Queues that fall back to alternative pools when the cloud has no stock of the preferred one."""

from ebbtide.model.cluster import Cluster
from ebbtide.model.tenancy import Queue


def queues_falling_back(cluster: Cluster) -> tuple[Queue, ...]:
    """Return the queues that fall back to the next pool when the cloud has no stock of the previous one."""
    return tuple(queue for queue in cluster.queues if queue.fallback)


def fallback_of(pool: str, cluster: Cluster) -> str:
    """Return the queue in which a pool has alternatives, the pool's only queue; empty for none."""
    return next((queue.name for queue in queues_falling_back(cluster) if pool in queue.pools), "")
