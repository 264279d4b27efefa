"""The way back: from recorded resources to what they mean, without a look at the declaration.

Cost, quotas and policy speak of what would really be there, so they read resources. Providers' names of
fields stand here as data, in one module a cloud.
"""

from ebbtide.reading.facts import AcceleratorFacts, ClusterFacts, DiskFacts, NodeFacts, PoolFacts, TaintFacts
from ebbtide.reading.fallback import read_fallbacks
from ebbtide.reading.pools import read_clusters, read_pools
from ebbtide.reading.queues import read_queues

__all__ = [
    "AcceleratorFacts",
    "ClusterFacts",
    "DiskFacts",
    "NodeFacts",
    "PoolFacts",
    "TaintFacts",
    "read_clusters",
    "read_fallbacks",
    "read_pools",
    "read_queues",
]
