"""Google Cloud's stand-in: the types and functions that the program uses, as pulumi-gcp 10.2 and the APIs
behind it have them.

`kinds` is the table of them, `provider` what they have in common, `pool_rules` and `cluster_rules` what GKE
refuses, `machine_pool` and `node_marks` what nodes are made of a pool.
"""

from ebbtide_rehearsal.cloud.gcp.provider import Gcp
from ebbtide_rehearsal.cloud.gcp.seeding import SeededNetwork, seed_cluster, seed_network
from ebbtide_rehearsal.cloud.gcp.storage import put_object

__all__ = ["Gcp", "SeededNetwork", "put_object", "seed_cluster", "seed_network"]
