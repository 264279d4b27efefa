"""GKE clusters over REST: their descriptions, and the sizes of their pools.

A description is what the fake provider has, in the API's form. Source of the paths and names: Kubernetes
Engine v1 (googleapis, google/container/v1/cluster_service.proto, 2026), and the expansion of the inputs in
terraform-provider-google 7.16 (resource_container_cluster.go, node_config.go).
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, cast

from ebbtide.autoscaler.nodes import NodePool
from ebbtide.clients.kubernetes.objects import part, parts
from ebbtide.declaration.catalog.clouds import is_gke_zone
from ebbtide.operations.adopting.inputs import moved
from ebbtide_rehearsal.cloud.ids import GCP, NODE_POOL
from ebbtide_rehearsal.cloud.pools import pools, register
from ebbtide_rehearsal.cloud.rest.server import RefusedRequestError, Request, route
from ebbtide_rehearsal.cloud.store import Resource, Store

_API: Final = "https://container.googleapis.com/v1"
_NETWORK: Final = (
    *("datapathProvider", "defaultSnatStatus", "disableL4LbFirewallReconciliation", "dnsConfig"),
    *("enableCiliumClusterwideNetworkPolicy", "enableFqdnNetworkPolicy", "enableIntranodeVisibility"),
    *("enableMultiNetworking", "gatewayApiConfig", "inTransitEncryptionConfig"),
    *("networkPerformanceConfig", "privateIpv6GoogleAccess", "serviceExternalIpsConfig"),
)
_CLUSTER_PATHS: Final = {
    **{name: f"networkConfig.{name}" for name in _NETWORK},
    "enableL4IlbSubsetting": "networkConfig.enableL4ilbSubsetting",
    "enableAutopilot": "autopilot.enabled",
    "enableLegacyAbac": "legacyAbac.enabled",
    "enableShieldedNodes": "shieldedNodes.enabled",
    "defaultMaxPodsPerNode": "defaultMaxPodsConstraint.maxPodsPerNode",
    "loggingConfig.enableComponents": "loggingConfig.componentConfig.enableComponents",
    "monitoringConfig.enableComponents": "monitoringConfig.componentConfig.enableComponents",
    "monitoringConfig.managedPrometheus": "monitoringConfig.managedPrometheusConfig",
    "clusterAutoscaling": "autoscaling",
    "autoscaling.enabled": "autoscaling.enableNodeAutoprovisioning",
    "autoscaling.autoProvisioningDefaults": "autoscaling.autoprovisioningNodePoolDefaults",
    "masterVersion": "currentMasterVersion",
}
"""Paths of a cluster's inputs that the API has elsewhere, in order."""

_POOL_PATHS: Final = {
    "nodeConfig.loggingVariant": "nodeConfig.loggingConfig.variantConfig.variant",
    "nodeConfig": "config",
    "nodeLocations": "locations",
    "nodeCount": "initialNodeCount",
    "maxPodsPerNode": "maxPodsConstraint.maxPodsPerNode",
    "nodeDrainConfigs": "nodeDrainConfig",
}
_OF_PROVIDER: Final = frozenset(
    {
        *("cluster", "deletionPolicy", "deletionProtection", "initialNodeCount", "instanceGroupUrls"),
        *("managedInstanceGroupUrls", "minMasterVersion", "networkingMode", "nodePools", "operation"),
        *("project", "pulumiLabels", "effectiveLabels", "removeDefaultNodePool", "timeouts"),
    }
)
"""Properties of the provider alone, and those that a description has elsewhere."""
_CLUSTER: Final = r"/v1/(?P<cluster>projects/(?P<project>[^/]+)/locations/[^/]+/clusters/[^/]+)"
_POOL: Final = _CLUSTER + r"/nodePools/(?P<pool>[^/:]+)"


def uid_of(cluster: str) -> str:
    """Return GKE's id of a cluster."""
    return sha256(cluster.encode()).hexdigest()


def described(store: Store, cluster: Resource) -> dict[str, Any]:
    """Return a cluster with its pools, as `clusters.get` does."""
    location, state = str(cluster.state["location"]), {**cluster.inputs, **cluster.state}
    if maintenance := part(state, "maintenancePolicy"):
        state["maintenancePolicy"] = {"window": dict(_windows(maintenance))}
    if operators := list(parts(state, "addonsConfig", "rayOperatorConfigs")):
        addons = {key: item for key, item in part(state, "addonsConfig").items() if "Operator" not in key}
        state["addonsConfig"] = {**addons, "rayOperatorConfig": operators[0]}
    document = moved(state, _CLUSTER_PATHS)
    network = document.setdefault("networkConfig", {})
    for key in ("network", "subnetwork"):
        if key in document:
            network[key] = str(document[key]).removeprefix("https://www.googleapis.com/compute/v1/")
            document[key] = str(document[key]).rpartition("/")[2]
    network["defaultEnablePrivateNodes"] = bool(
        part(document, "privateClusterConfig").get("enablePrivateNodes")
    )
    if state.get("networkingMode", "VPC_NATIVE") == "VPC_NATIVE":
        document["ipAllocationPolicy"] = {**part(document, "ipAllocationPolicy"), "useIpAliases": True}
    if "masterAuthorizedNetworksConfig" in document:
        document["masterAuthorizedNetworksConfig"]["enabled"] = True
    zones = [*([location] if is_gke_zone(location) else []), *document.pop("nodeLocations", ())]
    own = [pool for pool in store.resources(GCP, NODE_POOL) if pool.id.startswith(f"{cluster.id}/nodePools/")]
    return {
        **{key: value for key, value in document.items() if key not in _OF_PROVIDER},
        "id": uid_of(cluster.id),
        "name": cluster.id.rpartition("/")[2],
        "location": location,
        "locations": zones,
        "autopilot": part(document, "autopilot"),
        "selfLink": f"{_API}/{cluster.id}",
        "resourceLabels": part(document, "resourceLabels"),
        "status": "RUNNING",
        "nodePools": [_described_pool(pool) for pool in own],
    }


def _windows(policy: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the windows and exclusions of a policy, which are flat in the provider's inputs."""
    if daily := part(policy, "dailyMaintenanceWindow"):
        yield "dailyMaintenanceWindow", daily
    if recurring := part(policy, "recurringWindow"):
        window = {key: recurring.get(key) for key in ("startTime", "endTime")}
        yield "recurringWindow", {"window": window, "recurrence": recurring.get("recurrence")}
    yield (
        "maintenanceExclusions",
        {
            item["exclusionName"]: {
                **{key: item[key] for key in ("startTime", "endTime") if item.get(key)},
                "maintenanceExclusionOptions": item.get("exclusionOptions") or {"scope": "NO_UPGRADES"},
            }
            for item in parts(policy, "maintenanceExclusions")
        },
    )


def _described_pool(pool: Resource) -> dict[str, Any]:
    document = moved({**pool.inputs, **pool.state}, _POOL_PATHS)
    config = document.setdefault("config", {})
    if accelerators := config.pop("guestAccelerators", None):
        names = {"type": "acceleratorType", "count": "acceleratorCount"}
        config["accelerators"] = [
            {names.get(key, key): value for key, value in item.items()} for item in accelerators
        ]
    if tags := config.pop("resourceManagerTags", None):
        config["resourceManagerTags"] = {"tags": tags}
    if autoscaling := document.get("autoscaling"):
        document["autoscaling"] = {"enabled": True, **cast("Mapping[str, Any]", autoscaling)}
    kept = _OF_PROVIDER - {"initialNodeCount"}
    return {
        **{key: value for key, value in document.items() if key not in kept},
        "name": pool.id.rpartition("/")[2],
        "selfLink": f"{_API}/{pool.id}",
        "status": "RUNNING",
    }


class GoogleClusters:
    """GKE clusters."""

    def __init__(self, store: Store) -> None:
        """Serve the clusters of a store."""
        self._store = store

    def _resource(self, identity: str) -> Resource:
        resource = self._store.get(GCP, identity)
        if resource is None:
            raise RefusedRequestError(404, f"Not found: {identity}.")
        return resource

    @route("container.clusters.get", "GET", _CLUSTER)
    def _cluster(self, request: Request) -> Mapping[str, Any]:
        cluster = self._resource(request.names["cluster"])
        return described(self._store, cluster)

    def _found(self, request: Request) -> tuple[Resource, NodePool]:
        cluster, name = request.names["cluster"], request.names["pool"]
        resource = self._resource(f"{cluster}/nodePools/{name}")
        return resource, next(pool for pool in pools(self._store, cluster) if pool.name == name)

    @route("container.nodePools.get", "GET", _POOL)
    def _pool(self, request: Request) -> Mapping[str, Any]:
        resource, pool = self._found(request)
        autoscaling = part(resource.inputs, "autoscaling")
        return {
            "name": pool.name,
            "status": "RUNNING",
            "initialNodeCount": pool.initial // len(pool.zones),
            "autoscaling": {"enabled": True, **autoscaling} if pool.autoscaled else {},
        }

    @route("container.nodePools.setSize", "POST", f"{_POOL}:setSize")
    def _size(self, request: Request) -> Mapping[str, Any]:
        resource, pool = self._found(request)
        count = request.body.get("nodeCount")
        if not isinstance(count, int) or count < 0:
            raise RefusedRequestError(400, "NodePool.node_count must be non-negative.")
        nodes = count * len(pool.zones)
        limits = {} if pool.autoscaled else {"minimum": nodes, "maximum": nodes}
        register(self._store, pool.having(initial=nodes, **limits))
        self._store.put(resource.having(nodeCount=count, initialNodeCount=count))
        return _operation("SET_NODE_POOL_SIZE")

    @route("container.nodePools.setAutoscaling", "POST", f"{_POOL}:setAutoscaling")
    def _autoscaling(self, request: Request) -> Mapping[str, Any]:
        resource, pool = self._found(request)
        desired: Mapping[str, Any] = request.body.get("autoscaling") or {}
        inputs = {key: value for key, value in resource.inputs.items() if key != "autoscaling"}
        state = {key: value for key, value in resource.state.items() if key != "autoscaling"}
        if not desired.get("enabled"):
            nodes = pool.initial
            register(self._store, pool.having(autoscaled=False, minimum=nodes, maximum=nodes))
            self._save(resource, inputs, state)
            return _operation("SET_NODE_POOL_SIZE")
        limits = {key: value for key, value in desired.items() if key != "enabled"}
        zones = 1 if "totalMaxNodeCount" in limits else len(pool.zones)
        least = limits.get("totalMinNodeCount", limits.get("minNodeCount", 0)) * zones
        most = limits.get("totalMaxNodeCount", limits.get("maxNodeCount", 0)) * zones
        if most < max(1, least):
            raise RefusedRequestError(400, "Autoscaling maximum must be at least 1 and the minimum.")
        register(self._store, pool.having(autoscaled=True, minimum=least, maximum=most))
        self._save(resource, {**inputs, "autoscaling": limits}, {**state, "autoscaling": limits})
        return _operation("SET_NODE_POOL_SIZE")

    def _save(self, resource: Resource, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        self._store.put(Resource(resource.cloud, resource.id, resource.type, resource.urn, inputs, state))


def _operation(kind: str) -> Mapping[str, Any]:
    return {"name": "operation-1", "operationType": kind, "status": "DONE"}
