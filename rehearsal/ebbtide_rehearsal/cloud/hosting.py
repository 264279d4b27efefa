"""Clusters and node pools as the clouds host them: control planes, default and inline pools, and the nodes'
controllers; what a cluster's state, hardware, stock and quota refuse.

Sources: GKE v1 API (2026) and terraform-provider-google, resourceContainerClusterUpdate,
`containerNodePoolRestingStates`; azure-aks-docs, start-stop-cluster (2026): a stopped cluster can only be
started or deleted; pulumi/pulumi-azure-native#579: pools are added by themselves.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ebbtide.analysis.changes.inputs import field_changes, recreates_nodes
from ebbtide.analysis.changes.property_path import merged
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import read_pool
from ebbtide.analysis.recording import assumed_azure
from ebbtide.autoscaler.nodes import Autoscaling, NodePool, billed_count
from ebbtide.declaration.catalog.clouds import is_gke_zone
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at
from ebbtide_rehearsal.cloud import aks_nodes, gke_nodes, ids, pools
from ebbtide_rehearsal.cloud.ids import AGENT_POOL, AKS_CLUSTER, GKE_CLUSTER, NODE_POOL, POOLS_OF
from ebbtide_rehearsal.cloud.node_pools import fleet
from ebbtide_rehearsal.cloud.pools import all_machines, locations, machine_of
from ebbtide_rehearsal.cloud.provider import Clusters
from ebbtide_rehearsal.cloud.store import NO_STOCK, QUOTA, Resource, Store

DEFAULT_POOL: Final = "default-pool"
_GKE_VERSION: Final = f"{PINS['kubernetes'].version}-gke.1000"
"""GKE's version has the Kubernetes version of the rehearsal."""
_SEPARATORS: Final = {pools_.type: pools_.below for pools_ in POOLS_OF.values()}
_SETTINGS: Final[Mapping[str, str]] = {
    "expander": "expander",
    "scaleDownUnneededTime": "idle_seconds",
    "scaleDownDelayAfterAdd": "delay_after_add_seconds",
    "scaleDownUtilizationThreshold": "utilization",
    "ignoreDaemonsetsUtilization": "daemons_count",
    "maxGracefulTerminationSec": "eviction_seconds",
    "skipNodesWithLocalStorage": "skip_local_storage",
    "skipNodesWithSystemPods": "skip_system_pods",
}
"""Settings that the fake cloud's autoscaler applies; it ignores the others."""


def address(clusters: Clusters, identity: str, inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a cluster's control plane for its outputs."""
    endpoint = clusters.endpoint(identity)
    by_address = value_at(inputs, "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled") is True
    own = {"address": endpoint.host} if by_address else {}
    return {"dnsEndpoint": endpoint.host, "certificate": endpoint.certificate_authority, **own}


def credentials(clusters: Clusters, cluster: Resource, token: str) -> Mapping[str, Any]:
    """Return the credentials of an AKS cluster: a user's, or an administrator's local account
    (Azure/bicep#11601)."""
    endpoint = clusters.endpoint(cluster.id)
    return assumed_azure.credentials(
        "clusterAdmin" if "Admin" in token else "clusterUser",
        ids.last(cluster.id),
        ids.last(ids.group_of(cluster.id)),
        tenant=str(value_at(cluster.state, "identity.tenantId") or assumed_azure.TENANT),
        server=f"https://{endpoint.host}",
        certificate=endpoint.certificate_authority,
    )


def cluster_of(store: Store, pool: Resource) -> tuple[Resource | None, str]:
    """Return the cluster of a pool, and the pool's name."""
    identity, _, name = pool.id.rpartition(_SEPARATORS[pool.type])
    return store.get(pool.cloud, identity), name


def node_pool(store: Store, pool: Resource, old: Resource | None = None) -> NodePool | None:
    """Return a pool for the controllers of nodes; None without its cluster.

    Raises:
        LookupError: its machine type is unknown.
    """
    cluster, name = cluster_of(store, pool)
    if cluster is None:
        return None
    if pool.type == AGENT_POOL:
        return aks_nodes.node_pool(store, cluster, name, _answered_agent_pool(store, pool, old))
    fields = Inputs(pool.inputs)
    count = gke_nodes.node_count(store, fields, old)
    return gke_nodes.machine_pool(store, fields, cluster.id, zones_of(store, cluster), count)


def _answered_agent_pool(store: Store, pool: Resource, old: Resource | None) -> dict[str, Any]:
    cluster, _ = cluster_of(store, pool)
    version = str(cluster.state["currentKubernetesVersion"]) if cluster else PINS["kubernetes"].version
    return aks_nodes.answered(store, pool.state, old.state if old else {}, version)


def zones_of(store: Store, cluster: Resource) -> tuple[str, ...]:
    """Return the default zones for the nodes of a GKE cluster's pools."""
    location, own = str(cluster.state["location"]), tuple(cluster.inputs.get("nodeLocations") or ())
    if is_gke_zone(location):
        return (location, *own)
    return own or locations(store, CloudKind.GKE).default_zones(location)


def refuses(store: Store, resource: Resource, old: Resource | None) -> str:
    """Return why a cluster or a pool cannot be created or changed; empty if it can be."""
    if resource.type == AKS_CLUSTER and old is not None:
        known = {ids.last(pool.id) for pool in pools_of(store, resource)}
        if any(name not in known for name, _ in inline_pools(resource)):
            return (
                "A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed "
                "through managed cluster operations."
            )
        return _stopped(old, "updating")
    if resource.type not in _SEPARATORS:
        return ""
    cluster, name = cluster_of(store, resource)
    if cluster is not None and (message := _stopped(cluster, "creating or updating agent pools")):
        return message
    try:
        pool = node_pool(store, resource, old)
    except LookupError as error:
        return f'error creating node pool {name}: Machine type with name "{error}" does not exist there'
    return "" if pool is None else _lacks_hardware(store, pool) or ("" if old else _lacks_quota(store, pool))


def refuses_delete(store: Store, resource: Resource) -> str:
    """Return why a pool cannot be deleted; empty if it can be."""
    cluster = cluster_of(store, resource)[0] if resource.type in _SEPARATORS else None
    return _stopped(cluster, "deleting agent pools") if cluster else ""


def power(cluster: Mapping[str, Any]) -> str:
    """Return the power state from a cluster's state: `Running` or `Stopped`."""
    return str(value_at(cluster, "powerState.code") or "Running")


def power_message(cluster: Mapping[str, Any], doing: str) -> str:
    """Format AKS's message for an operation that the power state forbids, such as `starting`
    (MicrosoftDocs/azure-docs#85161)."""
    state = f"Provisioning State({cluster['provisioningState']}) and Power State({power(cluster)})"
    return f"managed cluster is in {state}, {doing} cannot be performed"


def _stopped(cluster: Resource, doing: str) -> str:
    return power_message(cluster.state, doing) if power(cluster.state) == "Stopped" else ""


def _lacks_hardware(store: Store, pool: NodePool) -> str:
    """Reject hardware that a zone or region does not have; a declaration is only warned."""
    kind = CloudKind(pool.cloud)
    machine, known = machine_of(store, kind, pool.machine), locations(store, kind)
    if machine is None:
        return ""
    attached = pool.accelerator[0] if pool.accelerator and kind is CloudKind.GKE else ""
    offering = known.offering(machine.family, attached)
    for place in pool.zones if kind is CloudKind.GKE else (pool.region,):
        if offering is not None and not known.offers(offering, place, machine.name):
            return f'Machine type "{machine.name}" is not available in {place}: it has no {offering.item}'
    return ""


def _lacks_quota(store: Store, pool: NodePool) -> str:
    """Reject a new pool whose first nodes exceed a quota that an injected fault sets; later nodes are refused
    to the autoscaler."""
    used = fleet.usage(store, CloudKind(pool.cloud), pool.region, all_machines(store))
    for name, share in fleet.shares(pool).items():
        needed, limit = share * pool.initial, fleet.limit(store, name)
        if needed and used.get(name, 0) + needed > limit:
            store.strike(QUOTA, name)
            text = (
                f"Pool {pool.name} needs {needed} of quota {name} in {pool.region}, and there are {limit:g}."
            )
            store.log_event("quota-exceeded", text, pool=pool.name, quota=name, limit=limit)
            return f'Insufficient quota to satisfy request: resource "{name}": {text}'
    return ""


def inline_pools(resource: Resource) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and inputs of the pools in an AKS cluster's inputs."""
    profiles = resource.inputs.get("agentPoolProfiles") if resource.type == AKS_CLUSTER else None
    for profile in profiles or ():
        yield str(profile["name"]), {key: value for key, value in profile.items() if key != "name"}


def pools_of(store: Store, cluster: Resource) -> list[Resource]:
    """Return the pools of a cluster, those of its inline list first."""
    own = POOLS_OF[cluster.type]
    below = (pool for pool in store.resources(cluster.cloud, own.type) if ids.within(pool.id, cluster.id))
    return sorted(below, key=lambda pool: bool(pool.urn))


def completed(store: Store, resource: Resource, old: Resource | None) -> Resource:
    """Return a cluster or a pool with what its cloud adds."""
    match resource.type:
        case ids.GKE_CLUSTER:
            version = str(resource.inputs.get("minMasterVersion") or "")
            location = resource.state["location"]
            zones = [zone for zone in zones_of(store, resource) if zone != location]
            exact = version if version.count(".") > 1 else _GKE_VERSION
            return resource.having(masterVersion=exact, nodeLocations=zones)
        case ids.AKS_CLUSTER:
            given = str(resource.inputs.get("kubernetesVersion") or "")
            default = PINS["kubernetes"].version
            exact = given if given.count(".") > 1 else f"{given}.0"
            return resource.having(
                kubernetesVersion=given or default.rpartition(".")[0],
                currentKubernetesVersion=default if default.startswith(given) else exact,
                powerState={"code": power(old.state if old else {})},
                provisioningState="Succeeded",
            )
        case ids.NODE_POOL:
            return resource.having(**merged(resource.state, _answered_node_pool(store, resource, old)))
        case ids.AGENT_POOL:
            return resource.having(**_answered_agent_pool(store, resource, old))
        case _:
            return resource


def _answered_node_pool(store: Store, resource: Resource, old: Resource | None) -> dict[str, Any]:
    """Return what GKE adds to a pool; its initial node count follows a resize
    (hashicorp/terraform-provider-google#6901)."""
    fields = Inputs(resource.inputs)
    count = gke_nodes.node_count(store, fields, old)
    is_kept = old is not None and fields.number("nodeCount") is None
    model = gke_nodes.PROVISIONING[read_pool(fields, "").capacity.kind].replace("standard", "on-demand")
    # GKE docs, gke-cost-allocation (2026)
    billing = {"goog-gke-node-pool-provisioning-model": model}
    try:
        pool = node_pool(store, resource, old)
    except LookupError:  # of a cluster that others have created
        pool = None
    taints = [gke_nodes.in_api_words(taint) for taint in pool.taints] if pool else []
    return {
        "nodeLocations": list(pool.zones if pool else fields.texts("nodeLocations")),
        "initialNodeCount": old.state.get("initialNodeCount", 0) if old and is_kept else count,
        "nodeCount": count,
        "nodeConfig": {"effectiveTaints": taints, "resourceLabels": billing},
    }


def autoscaling(state: Mapping[str, Any]) -> Autoscaling:
    """Return the settings of an AKS cluster's autoscaler, with defaults for omitted ones."""
    profile: Mapping[str, Any] = state.get("autoScalerProfile") or {}
    given = {
        own: _setting(own, profile[name]) for name, own in _SETTINGS.items() if profile.get(name, "") != ""
    }
    return Autoscaling(**given)


def _setting(name: str, value: Any) -> Any:
    match name:
        case "expander":
            return value
        case "daemons_count":
            return not value
        case "skip_local_storage" | "skip_system_pods":
            return value == "true"
        case _:
            text = str(value)
            return float(text.removesuffix("m")) * (60 if text.endswith("m") else 1)


def begin(store: Store, resource: Resource, old: Resource | None) -> None:
    """Have the controllers of nodes follow a cluster or a pool that was created or changed. GKE creates a
    default pool, which the provider deletes at once if it is not wanted, or on a later change of that."""
    if resource.type == AKS_CLUSTER:
        pools.put_settings(store, resource.id, autoscaling(resource.state))
    elif resource.type == GKE_CLUSTER:
        fields = Inputs(resource.inputs)
        for pool in pools.pools(store, resource.id):
            pools.register(store, _versioned(store, pool, resource, old))
        if fields.flag("removeDefaultNodePool"):
            pools.forget(store, resource.id, DEFAULT_POOL)
        elif old is None:
            default = Inputs({**resource.inputs, "name": DEFAULT_POOL, "nodeCount": None})
            zones, count = zones_of(store, resource), fields.number("initialNodeCount") or 0
            pools.register(store, gke_nodes.machine_pool(store, default, resource.id, zones, count))
    elif resource.type in _SEPARATORS:
        try:
            pool = node_pool(store, resource, old)
        except LookupError:  # of a cluster that others have created
            return
        if pool is not None:
            pools.register(store, _versioned(store, pool, resource, old))


def _versioned(store: Store, pool: NodePool, resource: Resource, old: Resource | None) -> NodePool:
    """Return a pool that changed, or whose cluster did, with a new version if that recreates its nodes."""
    before = next((item for item in pools.pools(store, pool.cluster) if item.name == pool.name), pool)
    changes = field_changes(resource.type, old.inputs, resource.inputs) if old else ()
    if any(recreates_nodes(resource.type, item.path, item.old, item.new) for item in changes):
        size = billed_count(pools.machines(store, pool.cluster), pool)
        return pool.having(version=before.version + 1, size=size)
    return pool.having(version=before.version, size=before.size)


def missing_nodes(store: Store, resource: Resource) -> str:
    """Return GKE's error for a new pool whose first nodes do not start; empty for none. It waits for them,
    and keeps the pool."""
    pool = node_pool(store, resource) if resource.type == NODE_POOL else None
    sold_out = store.faults(NO_STOCK).values()
    if (
        not pool
        or not pool.initial
        or not any(fault.matches(name) for fault in sold_out for name in (pool.name, pool.id))
    ):
        return ""
    store.log_event("node-pool-error", f"The first nodes of {pool.name} do not come.", id=resource.id)
    return f'NodePool {pool.name} was created in the error state "RUNNING_WITH_ERROR"'


def current(store: Store, resource: Resource) -> dict[str, Any]:
    """Return the part of the state that changes by itself, or by other resources: all pools of a cluster, and
    the nodes of an autoscaled pool."""
    match resource.type:
        case ids.GKE_CLUSTER:
            return {"nodePools": [{"name": ids.last(pool.id)} for pool in pools_of(store, resource)]}
        case ids.AKS_CLUSTER:
            return {"agentPoolProfiles": [dict(pool.state) for pool in pools_of(store, resource)]}
        case ids.NODE_POOL:
            return {"nodeCount": gke_nodes.current_count(store, resource)}
        case _:
            return {}


def end(store: Store, clusters: Clusters, resource: Resource) -> None:
    """Stop a cluster, or remove a pool's nodes."""
    if resource.type in POOLS_OF:
        for pool in pools.pools(store, resource.id):
            pools.forget(store, resource.id, pool.name)
        pools.delete_settings(store, resource.id)
        clusters.delete(resource.id)
    elif resource.type in _SEPARATORS:
        cluster, _, name = resource.id.rpartition(_SEPARATORS[resource.type])
        pools.forget(store, cluster, name)
