"""Immutable properties of GKE node pools.

Source: the properties whose change makes terraform-provider-google-beta 7.45 replace a pool
(ebbtide/providers/schemas/gcp.csv). The rows are those that Ebbtide sets; overrides are compared at all
others. The machine type, the
disk's size and type, labels, taints, network tags, zones, limits, image, version, repair and upgrade settings
and gVNIC can change: for some of them, GKE recreates the nodes, a few at a time, and keeps the pool. The
cluster, its project and its location are not included: with another cluster, every pool is another pool.
"""

from typing import Any, Final

from ..immutable_inputs import NEW_POOL_BESIDE, ImmutableInput, ImmutableInputs


def _node(wire: str, python: str, declared: str = "", unset: Any = None) -> ImmutableInput:
    declared = declared or f"overrides.nodeConfig.{wire}"
    return ImmutableInput(f"nodeConfig.{wire}", f"node_config.{python}", declared, unset)


def _network(wire: str, python: str) -> ImmutableInput:
    return ImmutableInput(
        f"networkConfig.{wire}", f"network_config.{python}", f"overrides.networkConfig.{wire}"
    )


POOLS: Final = ImmutableInputs(
    cloud="GKE",
    name="name",
    resource="gcp:container/nodePool:NodePool",
    rows=(
        _node("guestAccelerators", "guest_accelerators", "accelerator"),
        _node("shieldedInstanceConfig.enableSecureBoot", "shielded_instance_config.enable_secure_boot"),
        _node(
            "advancedMachineFeatures.threadsPerCore",
            "advanced_machine_features.threads_per_core",
            "threadsPerCore",
        ),
        _node("spot", "spot", "capacity", unset=False),
        _node("preemptible", "preemptible", "capacity", unset=False),
        _node("flexStart", "flex_start", "capacity", unset=False),
        ImmutableInput("queuedProvisioning", "queued_provisioning", "capacity"),
        _node("maxRunDuration", "max_run_duration", "capacity.maxRunDuration"),
        _node("reservationAffinity", "reservation_affinity", "capacity"),
        _node("serviceAccount", "service_account", "serviceAccount"),
        _node("bootDiskKmsKey", "boot_disk_kms_key", "cloud.keys.disks"),
        ImmutableInput("maxPodsPerNode", "max_pods_per_node", "maxPodsPerNode"),
        ImmutableInput("placementPolicy", "placement_policy", "compact"),
        _node("oauthScopes", "oauth_scopes"),
        _node("metadata", "metadata"),
        _node("minCpuPlatform", "min_cpu_platform"),
        _node("localSsdCount", "local_ssd_count"),
        _node("ephemeralStorageConfig", "ephemeral_storage_config"),
        _node(
            "ephemeralStorageLocalSsdConfig",
            "ephemeral_storage_local_ssd_config",
            "ephemeralStorageLocalSsdConfig",
        ),
        _node("localNvmeSsdBlockConfig", "local_nvme_ssd_block_config", "localNvmeSsdBlockConfig"),
        _node("localSsdEncryptionMode", "local_ssd_encryption_mode"),
        _node("secondaryBootDisks", "secondary_boot_disks", "secondaryBootDisks"),
        _node("enableConfidentialStorage", "enable_confidential_storage"),
        _node("hostMaintenancePolicy", "host_maintenance_policy"),
        _node("nodeGroup", "node_group"),
        _network("createPodRange", "create_pod_range"),
        _network("podRange", "pod_range"),
        _network("podIpv4CidrBlock", "pod_ipv4_cidr_block"),
        _network("additionalNodeNetworkConfigs", "additional_node_network_configs"),
        _network("additionalPodNetworkConfigs", "additional_pod_network_configs"),
    ),
    exceptions={
        **dict.fromkeys(("cluster", "location", "project"), "A pool belongs to one cluster."),
        **dict.fromkeys(("name", "namePrefix"), "A pool with another name is a new pool."),
        "initialNodeCount": "Changes are ignored.",
        **dict.fromkeys(("nodeConfig", "nodeConfig.shieldedInstanceConfig"), "Every pool has one."),
    },
    constants={"nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring": True},
    implied=(
        (("guestAccelerators",), ("enableSecureBoot",)),
        (
            ("spot", "preemptible", "flexStart", "queuedProvisioning"),
            ("reservationAffinity", "maxRunDuration"),
        ),
    ),
    work_fix=NEW_POOL_BESIDE,
    system_fix="Declare it with another name: the new pool is created before {name} is deleted.",
)
"""The provider would delete the pool before it creates the new one."""
