"""GKE node pools, and GKE's refusals that no rule of a declaration has: state, stock and quota."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.facts import Inputs, RecordedPool
from ebbtide.analysis.reading.gke import read_pool
from ebbtide.autoscaler.nodes import NodePool
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.machines import Machine, quota_names
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud import store as faults
from ebbtide_rehearsal.cloud.gcp.clusters import cluster_id, cluster_of, location_of, zones_of_cluster
from ebbtide_rehearsal.cloud.gcp.nodes import current_count, in_api_words, machine_pool, node_count
from ebbtide_rehearsal.cloud.gcp.request import (
    BAD_REQUEST,
    NODE_POOL,
    NOT_FOUND,
    GoogleCloud,
    Request,
    ResourceKind,
    Rule,
    api_error,
    last,
    outputs_of,
)
from ebbtide_rehearsal.cloud.pools import forget, register
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.regions import locations, machine_of
from ebbtide_rehearsal.cloud.store import NO_STOCK, Resource


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """A requested node pool.

    Attributes:
        zones: zones of its nodes.
    """

    request: Request
    cluster: Resource
    pool: RecordedPool
    zones: tuple[str, ...]

    @property
    def fields(self) -> Inputs:
        """Its inputs."""
        return self.request.fields

    @property
    def machine(self) -> Machine | None:
        """Machine type; None for an unknown name."""
        return self.pool.hardware


def _pool_rule(name: str, source: str, says: Callable[[PoolRequest], str | None], *, code: int = 400) -> Rule:
    """Build a rule whose refusals have an HTTP status, by default that of a bad request."""

    def refusal(request: Request) -> str | None:
        cluster = cluster_of(request)
        if cluster is None:
            return None
        zones = zones_of_cluster(request.cloud, cluster.inputs, location_of(cluster))
        find = partial(machine_of, request.cloud.store, CloudKind.GKE)
        pool = read_pool(request.fields, location_of(cluster), default_zones=zones, find=find)
        message = says(PoolRequest(request, cluster, pool, pool.zones or zones))
        reason = {400: BAD_REQUEST, 403: "forbidden"}[code]
        return None if message is None else api_error(code, message, reason)

    return Rule(name, source, refusal)


def _cluster_exists(request: Request) -> str | None:
    if cluster_of(request) is not None:
        return None
    reference = request.fields.text("cluster")
    identity = reference if "/" in reference else cluster_id(request.project, request.location, reference)
    return api_error(404, f"Not found: {identity}.", NOT_FOUND)


def _known_machine_type(pool: PoolRequest) -> str | None:
    """Reject a machine type whose nodes the fake cloud cannot emulate."""
    if pool.machine is not None:
        return None
    name = pool.fields.text("nodeConfig.machineType")
    return (
        f'Machine type with name "{name}" does not exist in zone "{pool.zones[0]}" (or the catalog of the '
        "rehearsal does not have it)."
    )


def _available_hardware(pool: PoolRequest) -> str | None:
    """Reject an accelerator or machine family that a zone does not have; a declaration is only warned."""
    machine, known = pool.machine, locations(pool.request.cloud.store, CloudKind.GKE)
    if machine is None:
        return None
    attached = next(
        (last(accelerator.text("type")) for accelerator in pool.fields.parts("nodeConfig.guestAccelerators")),
        "",
    )
    offering = known.offering(machine.family, attached or machine.accelerator)
    for zone in pool.zones:
        if offering is None or known.offers(offering, zone, machine.name):
            continue
        if offering.item == attached:
            return f'Accelerator type "{attached}" does not exist in zone {zone}.'
        return f'Invalid machine type "{machine.name}" in zone "{zone}": GCE_NOT_FOUND'
    return None


def _needs(pool: PoolRequest) -> dict[str, int]:
    """Return the amount of each quota for the first nodes; later nodes are refused to the autoscaler."""
    machine = pool.machine
    nodes = (pool.fields.number("nodeCount") or pool.fields.number("initialNodeCount") or 0) * len(pool.zones)
    if machine is None:
        return {}
    accelerator, kind = pool.pool.accelerator, pool.pool.capacity.kind
    shared = kind in ("spot", "preemptible", "flex-start", "queued")
    names = quota_names(CloudKind.GKE, machine.family, pool.pool.accelerator_type, spot=shared)
    count = accelerator.count if accelerator else 0
    return {name: nodes * (count if "GPU" in name or "TPU" in name else machine.vcpus) for name in names}


def _within_quota(pool: PoolRequest) -> str | None:
    """Reject a new pool whose first nodes exceed a quota that an injected fault sets."""
    if pool.request.old is not None:
        return None
    store = pool.request.cloud.store
    for name, needed in _needs(pool).items():
        limits = [
            float(fault.details["limit"])
            for fault in store.faults(faults.QUOTA).values()
            if fault.matches(name) and needed > float(fault.details["limit"])
        ]
        if limits and store.strike(faults.QUOTA, name) is not None:
            return _quota_exceeded(pool, name, needed, limits[0])
    return None


def _quota_exceeded(pool: PoolRequest, name: str, needed: int, limit: float) -> str:
    region = region_of(pool.zones[0])
    text = f"Pool {pool.request.name} needs {needed} of quota {name} in {region}, and there are {limit:g}."
    pool.request.cloud.store.log_event(
        "quota-exceeded", text, pool=pool.request.name, quota=name, limit=limit
    )
    return (
        f'Insufficient regional quota to satisfy request: resource "{name}": request requires '
        f"'{float(needed)}' and is short '{needed - limit}'. project has a quota of '{limit}' with "
        f"'{limit}' available. View and manage quotas at "
        f"https://console.cloud.google.com/iam-admin/quotas?usage=USED&project={pool.request.project}."
    )


RULES: Final = (
    Rule("existing cluster", "GKE v1 API, nodePools.create (2026)", _cluster_exists),
    _pool_rule("known machine type", "ebbtide/declaration/catalog/data/machines.csv", _known_machine_type),
    _pool_rule(
        "hardware available in zone",
        "GoogleCloudPlatform/kubernetes-engine-samples#1738; keras-team/kinetic#305; "
        "catalog/data/offerings.csv",
        _available_hardware,
    ),
    _pool_rule(
        "sufficient quota",
        "m-lab/etl#798; GoogleCloudPlatform/cloud-ops-sandbox#44",
        _within_quota,
        code=403,
    ),
)
"""Rules in the order of their check; the first broken one determines the response."""


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
        maps=frozenset({"nodeConfig.labels", "nodeConfig.resourceLabels"}),
        rules=RULES,
        failing="error creating NodePool",
        before_delete=_prevented,
        apply=_register,
        unfinished=_without_nodes,
        after_delete=_forget,
        current=_current,
        events="node-pool",
    ),
)
