"""Facts derived from recorded resources, independently of the declaration.

Cost, quotas and policy describe real resources, so they read recordings. Provider field names are data, in
one module per cloud.
"""

from ebbtide.analysis.reading.accounts import read_accounts
from ebbtide.analysis.reading.facts import ClusterFacts, QueueFacts, QuotaFacts
from ebbtide.analysis.reading.fallback import read_fallbacks
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.reading.queues import read_cluster_queues, read_queues
from ebbtide.analysis.reading.recorded_pool import RecordedPool

__all__ = [
    "ClusterFacts",
    "QueueFacts",
    "QuotaFacts",
    "RecordedPool",
    "read_accounts",
    "read_cluster_queues",
    "read_clusters",
    "read_fallbacks",
    "read_pools",
    "read_queues",
]
