"""Immutable properties of GKE node pools.

Source: the properties whose change makes terraform-provider-google-beta 7.45 replace a pool
(ebbtide/declaration/providers/schemas/gcp.csv). Those of a pool's fields are marked there (`gke_fixed` in
ebbtide/declaration/model/pool.py); overrides are compared at all others. The machine type, the disk's size
and type, labels, taints, network tags, zones, limits, image, version, repair and upgrade settings and gVNIC
can change: for some of them, GKE recreates the nodes, a few at a time, and keeps the pool. The cluster, its
project and its location are not included: with another cluster, every pool is another pool.
"""

from typing import Final

from ebbtide.declaration.catalog import CloudKind

from ..immutable_inputs import NEW_NAME, NEW_POOL_BESIDE, ImmutableInputs

POOLS: Final = ImmutableInputs(
    cloud=CloudKind.GKE,
    name="name",
    resource="gcp:container/nodePool:NodePool",
    own={
        "nodeConfig.bootDiskKmsKey": "cloud.keys.disks",
        **{
            f"nodeConfig.{wire}": f"overrides.nodeConfig.{wire}"
            for wire in ("shieldedInstanceConfig.enableSecureBoot", "oauthScopes", "metadata")
        },
    },
    exceptions={
        **dict.fromkeys(("cluster", "location", "project"), "A pool belongs to one cluster."),
        **dict.fromkeys(("name", "namePrefix"), "A pool with another name is a new pool."),
        "initialNodeCount": "Changes are ignored.",
        **dict.fromkeys(("nodeConfig", "nodeConfig.shieldedInstanceConfig"), "Every pool has one."),
    },
    constants={"nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring": True},
    unset=dict.fromkeys(("nodeConfig.spot", "nodeConfig.preemptible", "nodeConfig.flexStart"), False),
    implied=(
        (("guestAccelerators",), ("enableSecureBoot",)),
        (
            ("spot", "preemptible", "flexStart", "queuedProvisioning"),
            ("reservationAffinity", "maxRunDuration"),
        ),
    ),
    work_fix=NEW_POOL_BESIDE,
    system_fix=NEW_NAME,
)
"""The provider would delete the pool before it creates the new one."""
