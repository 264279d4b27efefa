"""Pools that stand in for one another when the cloud has no stock of the preferred one."""

from ebbtide.model.cluster import Cluster
from ebbtide.model.tenancy import Queue


def queues_falling_back(cluster: Cluster) -> tuple[Queue, ...]:
    """Queues whose work goes on to the next pool when the cloud has no stock of the one before."""
    return tuple(queue for queue in cluster.queues if queue.fallback)


def fallback_of(pool: str, cluster: Cluster) -> str:
    """Name of the queue that a pool falls back in, which no other queue leads to; empty for none."""
    return next((queue.name for queue in queues_falling_back(cluster) if pool in queue.pools), "")
