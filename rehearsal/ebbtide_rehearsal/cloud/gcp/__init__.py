"""Fake of pulumi-gcp 10.2 and of the APIs behind it, as far as the program uses them.

`kinds` is the table of types, `check` and `diff` emulate Pulumi's bridge to Terraform, `pool_rules` and
`cluster_rules` have GKE's refusals; `machine_pool` and `labels_and_taints` derive a pool's nodes.
"""

from ebbtide_rehearsal.cloud.gcp.provider import Gcp
from ebbtide_rehearsal.cloud.gcp.seeding import SeededNetwork, seed_cluster, seed_network
from ebbtide_rehearsal.cloud.gcp.storage import put_object

__all__ = ["Gcp", "SeededNetwork", "put_object", "seed_cluster", "seed_network"]
