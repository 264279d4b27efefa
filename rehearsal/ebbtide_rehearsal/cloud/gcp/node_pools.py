"""GKE node pools.

ForceNew, values and defaults are those of hashicorp/terraform-provider-google-beta 7.45
(google-beta/services/container, resource_container_node_pool.go and node_config.go, 2026-08), which
pulumi-gcp 10.2 is made of.
"""

from typing import Any, Final

from ebbtide_rehearsal.cloud.faults import NO_STOCK
from ebbtide_rehearsal.cloud.gcp.asked import Asked, World, last
from ebbtide_rehearsal.cloud.gcp.clusters import cluster_id, cluster_of, location_of, zones_of_cluster
from ebbtide_rehearsal.cloud.gcp.kind import Kind, at_least, one_of
from ebbtide_rehearsal.cloud.gcp.machine_pool import capacity_of, current_count, machine_pool, node_count
from ebbtide_rehearsal.cloud.gcp.node_marks import in_api_words
from ebbtide_rehearsal.cloud.gcp.pool_rules import RULES
from ebbtide_rehearsal.cloud.pools import NodePool, forget, register
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource

_SCHEMA: Final = "hashicorp/terraform-provider-google-beta 7.45, services/container (2026-08)"


def _identity(asked: Asked) -> str:
    reference = asked.said.text("cluster")
    cluster = reference if "/" in reference else cluster_id(asked.project, asked.location, reference)
    return f"{cluster}/nodePools/{asked.name}"


def _pool(asked: Asked) -> NodePool | None:
    """The pool in the controllers' terms; None while its cluster or machine is not there, as in a preview."""
    cluster = cluster_of(asked)
    if cluster is None:
        return None
    zones = zones_of_cluster(asked.world, cluster.inputs, location_of(cluster))
    try:
        return machine_pool(asked, cluster.id, zones)
    except LookupError:
        return None


def _outputs(asked: Asked) -> dict[str, Any]:
    pool = _pool(asked)
    taints = [in_api_words(taint) for taint in pool.taints] if pool else []
    zones = list(pool.zones) if pool else []
    return {
        "project": asked.project,
        "location": asked.location,
        "nodeLocations": zones,
        # GKE's initial node count follows a resize (hashicorp/terraform-provider-google#6901).
        "initialNodeCount": _initial_node_count(asked),
        "nodeCount": node_count(asked),
        "nodeConfig": {"effectiveTaints": taints, "resourceLabels": _billing(asked)},
        "instanceGroupUrls": [_group(asked, zone) for zone in zones],
        "managedInstanceGroupUrls": [
            _group(asked, zone).replace("Groups", "GroupManagers") for zone in zones
        ],
    }


def _initial_node_count(asked: Asked) -> int:
    if asked.old is not None and asked.said.number("nodeCount") is None:
        return asked.old.state.get("initialNodeCount", 0)
    return node_count(asked)


def _current(world: World, pool: Resource) -> dict[str, Any]:
    return {"nodeCount": current_count(world, pool)}


def _billing(asked: Asked) -> dict[str, str]:
    """Labels of the bill: those asked for, and GKE's own (GKE docs, gke-cost-allocation, 2026)."""
    kind = capacity_of(asked.said)
    model = kind if kind in ("spot", "preemptible", "flex-start") else "on-demand"
    return {
        **asked.said.labels("nodeConfig.resourceLabels"),
        "goog-gke-node-pool-provisioning-model": "flex-start" if kind == "queued" else model,
    }


def _group(asked: Asked, zone: str) -> str:
    group = f"gke-{last(asked.said.text('cluster'))}-{asked.name}-grp"
    return (
        f"https://www.googleapis.com/compute/v1/projects/{asked.project}/zones/{zone}/instanceGroups/{group}"
    )


def _goog_labels(path: str, _old: Any, new: Any) -> bool:
    """GKE's own labels of the bill are no difference (`containerNodePoolResourceLabelsDiffSuppress`)."""
    return path.startswith("nodeConfig.resourceLabels.goog-gke") and new is None


def _exists(identity: str) -> str:
    return f"resource - {identity} - already exists"


def _prevented(_world: World, pool: Resource) -> str | None:
    if pool.inputs.get("deletionPolicy") != "PREVENT":
        return None
    return f"cannot destroy {pool.id} because deletion_policy is set to PREVENT. Set it to DELETE to proceed."


def _register(asked: Asked, _identity: str) -> None:
    if asked.old is None and asked.said.number("initialNodeCount") and asked.said.number("nodeCount"):
        raise RefusedError(f"Cannot set both initial_node_count and node_count on node pool {asked.name}")
    pool = _pool(asked)
    if pool is not None:
        register(asked.world.store, pool)


def _without_nodes(asked: Asked, identity: str) -> str | None:
    """GKE waits for a pool's first nodes, and leaves the pool there where they do not come
    (`containerNodePoolRestingStates`)."""
    pool = _pool(asked)
    if pool is None or pool.initial == 0:
        return None
    sold_out = asked.world.store.faults(NO_STOCK).values()
    if not any(fault.strikes(pool.name) or fault.strikes(pool.id) for fault in sold_out):
        return None
    asked.world.store.say("node-pool-error", f"The first nodes of {pool.name} do not come.", id=identity)
    return f'NodePool {pool.name} was created in the error state "RUNNING_WITH_ERROR"'


def _forget(world: World, pool: Resource) -> None:
    cluster, _, name = pool.id.rpartition("/nodePools/")
    forget(world.store, cluster, name)


_NODE_CONFIG_REPLACES: Final = (
    "guestAccelerators",
    "localSsdCount",
    "ephemeralStorageConfig",
    "ephemeralStorageLocalSsdConfig",
    "localNvmeSsdBlockConfig",
    "secondaryBootDisks",
    "metadata",
    "minCpuPlatform",
    "oauthScopes",
    "preemptible",
    "reservationAffinity",
    "spot",
    "serviceAccount",
    "shieldedInstanceConfig.enableSecureBoot",
    "shieldedInstanceConfig.enableIntegrityMonitoring",
    "bootDiskKmsKey",
    "nodeGroup",
    "advancedMachineFeatures.threadsPerCore",
    "advancedMachineFeatures.enableNestedVirtualization",
    "soleTenantConfig.nodeAffinities",
    "hostMaintenancePolicy",
    "confidentialNodes.confidentialInstanceType",
    "enableConfidentialStorage",
    "localSsdEncryptionMode",
    "maxRunDuration",
    "flexStart",
    "gvnic.enabled",
)

NODE_POOL_KIND: Final = Kind(
    identity=_identity,
    outputs=_outputs,
    autonamed="name",
    defaults={
        "management.autoRepair": True,
        "management.autoUpgrade": True,
        "nodeConfig.spot": False,
        "nodeConfig.preemptible": False,
        "upgradeSettings.strategy": "SURGE",
        "deletionPolicy": "DELETE",
    },
    replaces=frozenset(
        {
            "name",
            "namePrefix",
            "project",
            "cluster",
            "location",
            "initialNodeCount",
            "maxPodsPerNode",
            "placementPolicy.policyName",
            "queuedProvisioning",
            "networkConfig.acceleratorNetworkProfile",
            "networkConfig.createPodRange",
            "networkConfig.podRange",
            "networkConfig.podIpv4CidrBlock",
            "networkConfig.additionalNodeNetworkConfigs",
            "networkConfig.additionalPodNetworkConfigs",
            "networkConfig.subnetwork",
            *(f"nodeConfig.{name}" for name in _NODE_CONFIG_REPLACES),
        }
    ),
    blocks=frozenset(
        {
            "placementPolicy",
            "nodeConfig",
            "nodeConfig.shieldedInstanceConfig",
            "nodeConfig.advancedMachineFeatures",
            "nodeConfig.soleTenantConfig",
            "nodeConfig.sandboxConfig",
        }
    ),
    same=frozenset({"cluster", "nodeConfig.guestAccelerators.type"}),
    computed=frozenset({"initialNodeCount", "nodeCount"}),
    maps=frozenset({"nodeConfig.labels", "nodeConfig.resourceLabels"}),
    overlooked=_goog_labels,
    checks=(
        at_least("autoscaling.minNodeCount", 0, source=_SCHEMA),
        at_least("autoscaling.maxNodeCount", 0, source=_SCHEMA),
        at_least("autoscaling.totalMinNodeCount", 0, source=_SCHEMA),
        at_least("autoscaling.totalMaxNodeCount", 0, source=_SCHEMA),
        at_least("nodeCount", 0, source=_SCHEMA),
        at_least("upgradeSettings.maxSurge", 0, source=_SCHEMA),
        at_least("upgradeSettings.maxUnavailable", 0, source=_SCHEMA),
        at_least("nodeConfig.diskSizeGb", 10, source=_SCHEMA),
        at_least("nodeConfig.localSsdCount", 0, source=_SCHEMA),
        one_of("autoscaling.locationPolicy", "BALANCED", "ANY", source=_SCHEMA),
        one_of("upgradeSettings.strategy", "SURGE", "BLUE_GREEN", source=_SCHEMA),
        one_of("nodeConfig.taints.effect", "NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE", source=_SCHEMA),
        one_of(
            "nodeConfig.guestAccelerators.gpuDriverInstallationConfig.gpuDriverVersion",
            "GPU_DRIVER_VERSION_UNSPECIFIED",
            "INSTALLATION_DISABLED",
            "DEFAULT",
            "LATEST",
            source=_SCHEMA,
        ),
        one_of(
            "nodeConfig.guestAccelerators.gpuSharingConfig.gpuSharingStrategy",
            "TIME_SHARING",
            "MPS",
            source="GKE v1 API, GPUSharingConfig (2026)",
        ),
        one_of(
            "nodeConfig.reservationAffinity.consumeReservationType",
            "UNSPECIFIED",
            "NO_RESERVATION",
            "ANY_RESERVATION",
            "SPECIFIC_RESERVATION",
            "ANY_RESERVATION_THEN_FAIL",
            source=_SCHEMA,
        ),
        one_of(
            "nodeConfig.workloadMetadataConfig.mode",
            "MODE_UNSPECIFIED",
            "GCE_METADATA",
            "GKE_METADATA",
            source=_SCHEMA,
        ),
    ),
    refusals=RULES,
    failing="error creating NodePool",
    taken=_exists,
    leaving=_prevented,
    happens=_register,
    unfinished=_without_nodes,
    gone=_forget,
    current=_current,
    events="node-pool",
)
