"""Rules for node counts, zones and locations."""

from typing import Final

from ebbtide.declaration.catalog import CloudKind, chips_of, is_tpu, tpu_topologies
from ebbtide.declaration.catalog.clouds import is_gke_zone, region_of
from ebbtide_rehearsal.cloud.gcp.clusters import location_of
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import TOOLKIT, PoolRequest, pool_rule
from ebbtide_rehearsal.cloud.regions import locations

_PODS: Final = (8, 256)
_MOST_AT_A_TIME: Final = 20
_MOST_IN_A_ZONE: Final = 1000


def _totals_or_each_zone(pool: PoolRequest) -> str | None:
    fields = pool.fields
    total = fields.number("autoscaling.totalMinNodeCount"), fields.number("autoscaling.totalMaxNodeCount")
    per_zone = fields.number("autoscaling.minNodeCount"), fields.number("autoscaling.maxNodeCount")
    if any(total) and any(per_zone):
        return (
            "Cannot specify both total node count limits (total_min_node_count, total_max_node_count) and "
            "node count limits per zone (min_node_count, max_node_count)."
        )
    return None


def _whole_slices(pool: PoolRequest) -> str | None:
    """GKE creates all nodes of a TPU slice or none."""
    topology, machine, fields = pool.fields.text("placementPolicy.tpuTopology"), pool.machine, pool.fields
    if not topology or machine is None:
        return None
    known = tpu_topologies(machine.accelerator)
    fits = is_tpu(machine.accelerator) and not chips_of(topology) % machine.accelerator_count
    if not fits or (known is not None and not known.has(topology)):
        return f"TPU topology {topology} is not supported for machine type {machine.name}."
    most = fields.number("autoscaling.totalMaxNodeCount") or fields.number("autoscaling.maxNodeCount")
    count = (
        most if fields.has("autoscaling") else fields.number("nodeCount") or fields.number("initialNodeCount")
    )
    needed = pool.pool.slice_nodes
    if needed > 1 and count != needed:
        return f"TPU topology {topology} of {machine.name} requires {needed} nodes, got {count or 0}."
    return None


def _a_maximum(pool: PoolRequest) -> str | None:
    fields = pool.fields
    if not fields.has("autoscaling"):
        return None
    least = fields.number("autoscaling.totalMinNodeCount") or fields.number("autoscaling.minNodeCount") or 0
    most = fields.number("autoscaling.totalMaxNodeCount") or fields.number("autoscaling.maxNodeCount") or 0
    if most < 1:
        return f"Max node count ({most}) must be at least 1 when autoscaling is enabled."
    if least > most:
        return f"Min node count ({least}) cannot be greater than max node count ({most})."
    return None


def _zones(pool: PoolRequest) -> str | None:
    region = region_of(location_of(pool.cluster))
    known = locations(pool.request.cloud.store, CloudKind.GKE).names()
    for zone in pool.zones:
        if not is_gke_zone(zone) or region_of(zone) != region:
            return f'Location "{zone}" is not a zone of region "{region}".'
        if zone not in known:
            return f'Location "{zone}" does not exist.'
    if len(set(pool.zones)) != len(pool.zones):
        return "Node locations must be unique."
    return None


def _location(pool: PoolRequest) -> str | None:
    own = location_of(pool.cluster)
    return (
        None
        if pool.request.location == own
        else f'Location "{pool.request.location}" is not that of the cluster.'
    )


def _pods(pool: PoolRequest) -> str | None:
    pods = pool.fields.number("maxPodsPerNode")
    least, most = _PODS
    if pods is not None and not least <= pods <= most:
        return f"Maximum pods per node must be between {least} and {most}, got {pods}."
    return None


def _surge(pool: PoolRequest) -> str | None:
    fields = pool.fields
    surge = fields.number("upgradeSettings.maxSurge"), fields.number("upgradeSettings.maxUnavailable")
    if fields.text("upgradeSettings.strategy") == "SURGE" and surge == (0, 0):
        return "Max_surge and max_unavailable cannot both be 0."
    if sum(number or 0 for number in surge) > _MOST_AT_A_TIME:
        return f"The sum of max_surge and max_unavailable cannot exceed {_MOST_AT_A_TIME}."
    return None


def _nodes_in_a_zone(pool: PoolRequest) -> str | None:
    fields, zones = pool.fields, len(pool.zones)
    total = fields.number("autoscaling.totalMaxNodeCount") or 0
    each = max(
        fields.number(path) or 0 for path in ("autoscaling.maxNodeCount", "nodeCount", "initialNodeCount")
    )
    if total > _MOST_IN_A_ZONE * zones or each > _MOST_IN_A_ZONE:
        return f"Node pools are limited to {_MOST_IN_A_ZONE} nodes per zone."
    return None


RULES: Final = (
    pool_rule("in the cluster's location", "GKE v1 API, nodePools.create (2026)", _location),
    pool_rule(
        "totals or limits per zone",
        f"pulumi-gcp 10.2.0, NodePoolAutoscaling; {TOOLKIT}",
        _totals_or_each_zone,
    ),
    pool_rule("a maximum not below the minimum", "hashicorp/terraform-provider-google#5441", _a_maximum),
    pool_rule(
        "zones of the region",
        "GKE v1 API, NodePool.locations (2026); catalog/data/locations.csv; kubernetes/test-infra#8381",
        _zones,
    ),
    pool_rule("whole TPU slices", "GKE docs, plan-tpus (2026)", _whole_slices),
    pool_rule("nodes in a zone", "GKE docs, quotas (2026)", _nodes_in_a_zone),
    pool_rule("pods per node", "GKE docs, flexible-pod-cidr (2026)", _pods),
    pool_rule("surge or unavailable", "GKE docs, node-pool-upgrade-strategies (2026)", _surge),
)
