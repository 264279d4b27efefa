"""GKE clusters.

ForceNew, values and defaults are those of hashicorp/terraform-provider-google-beta 7.45
(google-beta/services/container/resource_container_cluster.go, 2026-08), which pulumi-gcp 10.2 is made of.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from ebbtide.catalog import PINS, CloudKind
from ebbtide.catalog.clouds import is_gke_zone
from ebbtide_rehearsal.cloud.gcp.asked import CLOUD, NODE_POOL, Asked, Settings, World, api_error, inputs_of
from ebbtide_rehearsal.cloud.gcp.cluster_rules import RULES
from ebbtide_rehearsal.cloud.gcp.kind import Check, Kind, at_least, one_of
from ebbtide_rehearsal.cloud.gcp.machine_pool import machine_pool
from ebbtide_rehearsal.cloud.pools import forget, pools, register
from ebbtide_rehearsal.cloud.provider import Failure, Properties
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.store import Resource

_SCHEMA: Final = "hashicorp/terraform-provider-google-beta 7.45, resource_container_cluster.go (2026-08)"
_LINK: Final = "https://container.googleapis.com/v1/"
_PUBLIC: Final = "192.0.2.10"  # reserved for documentation (RFC 5737): nobody is to reach it
DEFAULT_POOL: Final = "default-pool"

# What GKE runs is the Kubernetes that the rehearsal runs.
VERSION: Final = f"{PINS['kubernetes'].version}-gke.1000"


def _name(value: Any) -> str | None:
    wrong = (
        (len(value) > 40, "cannot be longer than 40 characters"),  # noqa: PLR2004 - it says so itself
        (not re.match(r"^[a-z0-9-]+$", value), "can only contain lowercase letters, numbers and hyphens"),
        (not re.match(r"^[a-z]", value), "must start with a letter"),
        (not re.search(r"[a-z0-9]$", value), "must end with a number or a letter"),
    )
    return next((f'"name" {why}' for broken, why in wrong if broken), None)


def cluster_id(project: str, location: str, name: str) -> str:
    """The id of a cluster, here and among the control planes."""
    return f"projects/{project}/locations/{location}/clusters/{name}"


def _identity(asked: Asked) -> str:
    return cluster_id(asked.project, asked.location, asked.name)


def _outputs(asked: Asked) -> dict[str, Any]:
    identity = _identity(asked)
    said = asked.said
    try:
        endpoint = asked.world.clusters.endpoint(identity)
    except KeyError:
        host, authority = "", ""
    else:
        host, authority = endpoint.host, endpoint.certificate_authority
    zones = list(said.texts("nodeLocations")) or [
        zone for zone in _default_zones(asked.world, asked.location) if zone != asked.location
    ]
    version = said.text("minMasterVersion")
    return {
        "project": asked.project,
        "location": asked.location,
        "selfLink": f"{_LINK}{identity}",
        "endpoint": host if said.flag("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled") else _PUBLIC,
        "masterAuth": {
            "clientCertificateConfig": {"issueClientCertificate": False},
            "clientCertificate": "",
            "clientKey": "",
            "clusterCaCertificate": authority,
        },
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": host}},
        "masterVersion": version if version.count(".") > 1 else VERSION,
        "nodeLocations": zones,
        "labelFingerprint": "00000000",
    }


def _protected(_world: World, cluster: Resource) -> str | None:
    if cluster.inputs.get("deletionPolicy") == "PREVENT":
        return (
            f"cannot destroy {cluster.id} because deletion_policy is set to PREVENT. Set it to DELETE to "
            "proceed."
        )
    if cluster.inputs.get("deletionProtection", True):
        return (
            "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed "
            "with cluster deletion."
        )
    return None


def _start(asked: Asked, identity: str) -> None:
    """The control plane comes up first; GKE then makes a default pool, and takes it away at once where it is
    not wanted."""
    if asked.old is not None:
        return
    asked.world.clusters.create(identity, "gke")
    if not asked.said.flag("removeDefaultNodePool"):
        default = {
            "name": DEFAULT_POOL,
            "cluster": asked.name,
            "location": asked.location,
            "initialNodeCount": asked.said.number("initialNodeCount"),
            **{key: asked.inputs[key] for key in ("nodeConfig", "nodeLocations") if key in asked.inputs},
        }
        settings = Settings(asked.project)
        pool = Asked(asked.world, settings, NODE_POOL, "", default)
        register(
            asked.world.store,
            machine_pool(pool, identity, zones_of_cluster(asked.world, asked.inputs, asked.location)),
        )


def _default_zones(world: World, location: str) -> tuple[str, ...]:
    """The zones in which a cluster has nodes where none are named: its own, or three of its region."""
    if is_gke_zone(location):
        return (location,)
    return locations(world.store, CloudKind.GKE).default_zones(location)


def zones_of_cluster(world: World, inputs: Properties, location: str) -> tuple[str, ...]:
    """The zones in which a cluster's pools have nodes where they name none."""
    named = inputs.get("nodeLocations")
    own = tuple(str(zone) for zone in named) if isinstance(named, list) else ()
    if not own:
        return _default_zones(world, location)
    return (location, *own) if is_gke_zone(location) else own


def _stop(world: World, cluster: Resource) -> None:
    """Its node pools go with it, whoever made them."""
    for pool in pools(world.store, cluster.id):
        forget(world.store, cluster.id, pool.name)
    for resource in world.of(NODE_POOL):
        if resource.id.startswith(f"{cluster.id}/"):
            world.store.remove(CLOUD, resource.id)
    world.clusters.delete(cluster.id)


def _taken(identity: str) -> str:
    return api_error(409, f"Already exists: {identity}.", "alreadyExists")


def _conflicts(inputs: Properties) -> Iterator[Failure]:
    """What Terraform's `ConflictsWith` and `CustomizeDiff` refuse."""
    autopilot = ("removeDefaultNodePool", "nodePools", "enableShieldedNodes", "networkPolicy")
    if inputs.get("enableAutopilot") is True:
        for other in autopilot:
            if inputs.get(other) is not None:
                yield Failure(other, f'"{other}": conflicts with enable_autopilot')
    policy = inputs.get("ipAllocationPolicy")
    if policy is not None and inputs.get("clusterIpv4Cidr") is not None:
        yield Failure("clusterIpv4Cidr", '"cluster_ipv4_cidr": conflicts with ip_allocation_policy')
    if inputs.get("removeDefaultNodePool") is True and inputs.get("nodeVersion") is not None:
        yield Failure(
            "nodeVersion", "node_version can only be specified if remove_default_node_pool is not true"
        )


_NODE_CONFIG_IS_FORCE_NEW: Final = (
    "guestAccelerators",
    "localSsdCount",
    "metadata",
    "minCpuPlatform",
    "oauthScopes",
    "preemptible",
    "reservationAffinity",
    "spot",
    "serviceAccount",
    "shieldedInstanceConfig",
    "sandboxConfig",
    "bootDiskKmsKey",
    "maxRunDuration",
    "flexStart",
)

CLUSTER_KIND: Final = Kind(
    identity=_identity,
    outputs=_outputs,
    autonamed="name",
    defaults={
        "deletionProtection": True,
        "enableShieldedNodes": True,
        "clusterAutoscaling.autoscalingProfile": "BALANCED",
        "ipAllocationPolicy.stackType": "IPV4",
    },
    replaces=frozenset(
        {
            "name",
            "location",
            "project",
            "clusterIpv4Cidr",
            "description",
            "enableKubernetesAlpha",
            "enableTpu",
            "tpuConfig",
            "enableAutopilot",
            "initialNodeCount",
            "confidentialNodes",
            "masterAuth.clientCertificateConfig",
            "network",
            "subnetwork",
            "ipAllocationPolicy.clusterIpv4CidrBlock",
            "ipAllocationPolicy.servicesIpv4CidrBlock",
            "ipAllocationPolicy.clusterSecondaryRangeName",
            "ipAllocationPolicy.servicesSecondaryRangeName",
            "ipAllocationPolicy.podCidrOverprovisionConfig",
            "networkingMode",
            "privateClusterConfig.masterIpv4CidrBlock",
            "privateClusterConfig.privateEndpointSubnetwork",
            "defaultMaxPodsPerNode",
            "datapathProvider",
            "dataplaneOptimizationMode",
            *(f"nodeConfig.{name}" for name in _NODE_CONFIG_IS_FORCE_NEW),
        }
    ),
    blocks=frozenset({"ipAllocationPolicy", "nodeConfig"}),
    same=frozenset({"network", "subnetwork"}),
    checks=(
        Check("name", _SCHEMA, _name),
        one_of(
            "releaseChannel.channel", "UNSPECIFIED", "RAPID", "REGULAR", "STABLE", "EXTENDED", source=_SCHEMA
        ),
        one_of("networkingMode", "VPC_NATIVE", "ROUTES", source=_SCHEMA),
        one_of(
            "datapathProvider",
            "DATAPATH_PROVIDER_UNSPECIFIED",
            "LEGACY_DATAPATH",
            "ADVANCED_DATAPATH",
            source=_SCHEMA,
        ),
        one_of("clusterAutoscaling.autoscalingProfile", "BALANCED", "OPTIMIZE_UTILIZATION", source=_SCHEMA),
        one_of(
            "nodeConfig.workloadMetadataConfig.mode",
            "MODE_UNSPECIFIED",
            "GCE_METADATA",
            "GKE_METADATA",
            source=_SCHEMA,
        ),
        one_of("ipAllocationPolicy.stackType", "IPV4", "IPV4_IPV6", source=_SCHEMA),
        at_least("nodeConfig.diskSizeGb", 10, source=_SCHEMA),
    ),
    checked=_conflicts,
    refusals=RULES,
    taken=_taken,
    leaving=_protected,
    happens=_start,
    gone=_stop,
    events="cluster",
)


def cluster_of(asked: Asked) -> Resource | None:
    """The cluster that a node pool is asked for in: by name, or by id."""
    reference = asked.said.text("cluster")
    identity = reference if "/" in reference else cluster_id(asked.project, asked.location, reference)
    return asked.world.get(identity)


def location_of(cluster: Resource) -> str:
    """The zone or region of a cluster, whether it was asked for or the provider's."""
    return str(cluster.state["location"])


def channel_of(cluster: Resource) -> str:
    """The release channel of a cluster; empty where it is in none."""
    channel = inputs_of(cluster).text("releaseChannel.channel")
    return "" if channel == "UNSPECIFIED" else channel
