"""GKE node pools."""

from typing import Any, Final

from ebbtide.analysis.reading.gke import read_pool
from ebbtide_rehearsal.cloud.faults import NO_STOCK
from ebbtide_rehearsal.cloud.gcp.answers import outputs_of
from ebbtide_rehearsal.cloud.gcp.clusters import cluster_of, location_of, zones_of_cluster
from ebbtide_rehearsal.cloud.gcp.labels_and_taints import in_api_words
from ebbtide_rehearsal.cloud.gcp.machine_pool import current_count, machine_pool, node_count
from ebbtide_rehearsal.cloud.gcp.pool_rules import RULES
from ebbtide_rehearsal.cloud.gcp.request import NODE_POOL, GoogleCloud, Request, last
from ebbtide_rehearsal.cloud.gcp.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.pools import NodePool, forget, register
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource


def _pool(request: Request) -> NodePool | None:
    """Return the pool for the controllers; None if its cluster or machine is unknown, as in a preview."""
    cluster = cluster_of(request)
    if cluster is None:
        return None
    zones = zones_of_cluster(request.cloud, cluster.inputs, location_of(cluster))
    try:
        return machine_pool(request, cluster.id, zones)
    except LookupError:
        return None


def _outputs(request: Request) -> dict[str, Any]:
    pool = _pool(request)
    taints = [in_api_words(taint) for taint in pool.taints] if pool else []
    zones = list(pool.zones) if pool else []
    return {
        **outputs_of(request),
        "nodeLocations": zones,
        # GKE's initial node count follows a resize (hashicorp/terraform-provider-google#6901).
        "initialNodeCount": _initial_node_count(request),
        "nodeCount": node_count(request),
        "nodeConfig": {"effectiveTaints": taints, "resourceLabels": _billing(request)},
        "instanceGroupUrls": [_group(request, zone) for zone in zones],
        "managedInstanceGroupUrls": [
            _group(request, zone).replace("Groups", "GroupManagers") for zone in zones
        ],
    }


def _initial_node_count(request: Request) -> int:
    if request.old is not None and request.fields.number("nodeCount") is None:
        return request.old.state.get("initialNodeCount", 0)
    return node_count(request)


def _current(cloud: GoogleCloud, pool: Resource) -> dict[str, Any]:
    return {"nodeCount": current_count(cloud, pool)}


def _billing(request: Request) -> dict[str, str]:
    """Return billing labels: the requested ones, and GKE's own (GKE docs, gke-cost-allocation, 2026)."""
    kind = read_pool(request.fields, "").capacity.kind
    model = kind if kind in ("spot", "preemptible", "flex-start") else "on-demand"
    return {
        **request.fields.labels("nodeConfig.resourceLabels"),
        "goog-gke-node-pool-provisioning-model": "flex-start" if kind == "queued" else model,
    }


def _group(request: Request, zone: str) -> str:
    group = f"gke-{last(request.fields.text('cluster'))}-{request.name}-grp"
    return f"https://www.googleapis.com/compute/v1/projects/{request.project}/zones/{zone}/instanceGroups/{group}"


def _exists(identity: str) -> str:
    return f"resource - {identity} - already exists"


def _prevented(_cloud: GoogleCloud, pool: Resource) -> str | None:
    if pool.inputs.get("deletionPolicy") != "PREVENT":
        return None
    return f"cannot destroy {pool.id} because deletion_policy is set to PREVENT. Set it to DELETE to proceed."


def _register(request: Request, _pool_resource: Resource) -> None:
    if (
        request.old is None
        and request.fields.number("initialNodeCount")
        and request.fields.number("nodeCount")
    ):
        raise RefusedError(f"Cannot set both initial_node_count and node_count on node pool {request.name}")
    pool = _pool(request)
    if pool is not None:
        register(request.cloud.store, pool)


def _without_nodes(request: Request) -> str | None:
    """GKE waits for a pool's first nodes, and keeps the pool if they do not start
    (`containerNodePoolRestingStates`)."""
    pool = _pool(request)
    if pool is None or pool.initial == 0:
        return None
    sold_out = request.cloud.store.faults(NO_STOCK).values()
    if not any(fault.matches(pool.name) or fault.matches(pool.id) for fault in sold_out):
        return None
    request.cloud.store.log_event(
        "node-pool-error", f"The first nodes of {pool.name} do not come.", id=request.id
    )
    return f'NodePool {pool.name} was created in the error state "RUNNING_WITH_ERROR"'


def _forget(cloud: GoogleCloud, pool: Resource) -> None:
    cluster, _, name = pool.id.rpartition("/nodePools/")
    forget(cloud.store, cluster, name)


KINDS: Final = (
    ResourceKind(
        type=NODE_POOL,
        outputs=_outputs,
        autonamed="name",
        maps=frozenset({"nodeConfig.labels", "nodeConfig.resourceLabels"}),
        rules=RULES,
        failing="error creating NodePool",
        already_exists=_exists,
        before_delete=_prevented,
        apply=_register,
        unfinished=_without_nodes,
        after_delete=_forget,
        current=_current,
        events="node-pool",
    ),
)
