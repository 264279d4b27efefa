"""Capacity types: spot, preemptible, queued, flex-start and reservations, on each cloud."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from ebbtide.declaration.catalog.machines import SPOT_OR_FLEX_START, can_be_spot
from ebbtide.declaration.model.base import Declared
from ebbtide.declaration.model.capacity import FlexStart, OnDemand, Preemptible, Queued, Reservation, Spot
from ebbtide.declaration.model.cloud import Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    NO_GKE_POOL,
    NO_POOL,
    PoolIn,
    PoolRule,
    Severity,
    cluster_rule,
    pool_rule,
)
from ebbtide.values import durations
from ebbtide.values.cloud_kind import CloudKind

_SCHEDULED = (FlexStart, Queued)
_ALL = (OnDemand, Spot, Preemptible, FlexStart, Queued, Reservation)
_TOOLKIT = "cluster-toolkit modules/compute/gke-node-pool/main.tf@01a7a3ed, preconditions"
_QUEUED_DOCS = "GKE docs, provisioningrequest (2026-04-08)"
_FLEX_DOCS = "GKE docs, dws-flex-start-training (2026-06-09)"
_GRACE_DOCS = "GKE docs, spot-vms (2026-08); pulumi-gcp 10.2.0 kubeletConfig.shutdownGracePeriodSeconds"
_SHORTEST_RUN, _LONGEST_RUN = timedelta(minutes=10), timedelta(days=7)
_GRACES = tuple(timedelta(seconds=seconds) for seconds in (0, 30, 120))
_COMPACT_FLEX = ("a3-ultragpu-", "a4-", "h4d-")
_SCHEDULED_SERIES = "h4d-"
"""Series without accelerators that flex-start supports."""
_SPOT_DOCS = "azure-aks-docs spot-node-pool.md (2025-04-06)"
_DECIMALS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """A restriction of a capacity type.

    Attributes:
        name: name of the rule.
        kinds: capacity types that it applies to.
        field: field that breaks it.
        offence: forbidden value; None if there is none. The messages have `{value}` for it, and `{kind}` for
            the capacity type.
        problem: what is wrong.
        consequence: what would happen.
        fix: what to write.
        source: source of the restriction.
    """

    name: str
    kinds: tuple[type[Declared], ...]
    field: str
    offence: Callable[[PoolIn], object]
    problem: str
    fix: str
    source: str
    consequence: str = NO_GKE_POOL

    def check(self, pool: PoolIn) -> Iterator[Fault]:
        """Return a fault if the pool has one of these capacity types and its field breaks the rule."""
        capacity = pool.pool.capacity
        if not isinstance(capacity, self.kinds) or (value := self.offence(pool)) is None:
            return
        problem, fix = (text.format(kind=capacity.kind, value=value) for text in (self.problem, self.fix))
        yield Fault(pool.at(self.field), problem, self.consequence, fix)


def _run_duration(pool: PoolIn) -> str | None:
    capacity = pool.pool.capacity
    run = capacity.max_run_duration if isinstance(capacity, FlexStart | Queued) else None
    return None if run is None or _SHORTEST_RUN <= run <= _LONGEST_RUN else durations.in_one_unit(run)


def _grace(pool: PoolIn) -> str | None:
    grace = pool.pool.shutdown_grace
    return durations.in_one_unit(grace) if grace is not None else None


def _grace_out_of_range(pool: PoolIn) -> str | None:
    return None if pool.pool.shutdown_grace in _GRACES else _grace(pool)


def _compact(pool: PoolIn) -> str | None:
    return pool.pool.machine.type if pool.pool.compact and pool.pool.machine else None


def _compact_not_for_flex(pool: PoolIn) -> str | None:
    machine = _compact(pool)
    return machine if machine and not machine.startswith(_COMPACT_FLEX) else None


def _compact_series(pool: PoolIn) -> str | None:
    series = pool.resolved.series if pool.pool.compact else None
    if series is None or series.compact or pool.resolved.has_tpus:
        return None
    return series.name


def _too_many_for_compact(pool: PoolIn) -> str | None:
    machine, series, nodes = _compact(pool), pool.resolved.series, pool.resolved.max_nodes
    most = series.compact_max_nodes if machine and series else None
    if not most or nodes <= most:
        return None
    return f"{nodes} nodes of {machine}, and compact placement supports {most}"


def _not_scheduled(pool: PoolIn) -> str | None:
    machine = pool.machine
    if machine is None or pool.pool.is_system or pool.resolved.accelerator_type:
        return None
    return None if machine.name.startswith(_SCHEDULED_SERIES) else machine.name


def _not_on_demand(pool: PoolIn) -> str | None:
    machine = pool.pool.machine
    return machine.type if machine and machine.type in SPOT_OR_FLEX_START else None


def _zones_of_compact(pool: PoolIn) -> str | None:
    zones = pool.pool.zones
    if not pool.pool.compact or len(zones) == 1 or (not zones and pool.site.is_zonal):
        return None
    return f"{len(zones)} zones" if zones else "all zones of the region"


ROWS = (
    Row(
        name="queued and flex-start have no fixed count",
        kinds=_SCHEDULED,
        field="nodes.count",
        offence=lambda pool: pool.pool.nodes.count,
        problem="A {kind} pool cannot have a fixed number of nodes.",
        fix="Write nodes: {{max: {value}}}.",
        source=f"{_TOOLKIT}; k8s-config-connector#11085",
    ),
    Row(
        name="queued and flex-start scale from zero",
        kinds=_SCHEDULED,
        field="nodes.min",
        offence=lambda pool: pool.pool.nodes.min or None,
        problem="A {kind} pool starts with no nodes, and min is {value}.",
        fix="Remove min.",
        source=f"{_TOOLKIT}; k8s-config-connector#11085",
    ),
    Row(
        name="no compact placement for queued",
        kinds=(Queued,),
        field="compact",
        offence=lambda pool: None if pool.resolved.has_tpus else _compact(pool),
        problem="A queued pool does not support compact placement.",
        fix="Remove compact.",
        source=_TOOLKIT,
    ),
    Row(
        name="compact placement for flex-start",
        kinds=(FlexStart,),
        field="compact",
        offence=_compact_not_for_flex,
        problem="A flex-start pool of {value} does not support compact placement.",
        fix="Omit compact, or write a machine of the series a3-ultragpu, a4 or h4d.",
        source="cluster-toolkit modules/compute/gke-node-pool (2026)",
    ),
    Row(
        name="queued and flex-start machine series",
        kinds=_SCHEDULED,
        field="machine",
        offence=_not_scheduled,
        problem="GKE does not support {kind} for {value}, only for GPUs, TPUs and the series H4D.",
        consequence="No node could be created: each request for one fails.",
        fix="Write a machine with accelerators, or capacity: spot.",
        source="GKE docs, concepts/dws (docs.cloud.google.com, 2026)",
    ),
    Row(
        name="A3 High with fewer than 8 GPUs",
        kinds=(OnDemand, Reservation),
        field="capacity",
        offence=_not_on_demand,
        problem="Google Cloud offers {value} only as spot or flex-start, and the capacity is {kind}.",
        fix="Write capacity: spot, flex-start or queued, or machine: a3-highgpu-8g.",
        source="Compute Engine docs, accelerator-optimized-machines (2026)",
    ),
    Row(
        name="compact placement machine series",
        kinds=_ALL,
        field="compact",
        offence=_compact_series,
        problem="Nodes of the {value} series do not support compact placement.",
        fix="Omit compact, or write a machine of a series such as c2, n2, g2, a2, a3 or a4.",
        source="GKE docs, compact-placement (2026); catalog/data/machine_series.csv",
    ),
    Row(
        name="maximum nodes in compact placement",
        kinds=_ALL,
        field="nodes",
        offence=_too_many_for_compact,
        problem="The pool can have {value}.",
        consequence="The autoscaler could not add nodes beyond that number.",
        fix="Write fewer, or omit compact.",
        source="GKE docs, compact-placement (2026); catalog/data/machine_series.csv",
    ),
    Row(
        name="compact placement needs one zone",
        kinds=_ALL,
        field="compact",
        offence=_zones_of_compact,
        problem="Compact placement is within one zone, and this pool spans {value}.",
        fix="Write the one zone under zones, or omit compact.",
        source=f"{_TOOLKIT}; GKE docs, compact-placement (2026)",
    ),
    Row(
        name="no auto-repair for queued and flex-start",
        kinds=_SCHEDULED,
        field="autoRepair",
        offence=lambda pool: pool.pool.auto_repair or None,
        problem="GKE does not repair the nodes of a {kind} pool.",
        fix="Remove autoRepair.",
        source=f"{_TOOLKIT}; {_FLEX_DOCS}",
    ),
    Row(
        name="no upgrade settings for queued and flex-start",
        kinds=_SCHEDULED,
        field="upgrade",
        offence=lambda pool: pool.pool.upgrade,
        problem="A {kind} pool has no upgrade settings.",
        consequence="GKE replaces its nodes with its own strategy, SHORT_LIVED, which cannot be set.",
        fix="Remove upgrade.",
        source="GKE v1 API, UpgradeSettings (2026); pulumi-gcp 9.35.0 has SURGE and BLUE_GREEN alone; "
        "GKE docs, provisioningrequest (2026-04-08)",
    ),
    Row(
        name="supported run duration",
        kinds=_SCHEDULED,
        field="capacity.maxRunDuration",
        offence=_run_duration,
        problem="{value} is not a supported maximum run duration of a node.",
        fix="Write 10m to 7d, or omit it for 7d.",
        source=f"{_FLEX_DOCS}: 604800 s at most; GoogleCloudPlatform/cluster-autoscaler@7d250507, "
        "pkg/autoprovisioning/injection.go: 600 s at least (2026-08)",
    ),
    Row(
        name="no queued or flex-start system pool",
        kinds=_SCHEDULED,
        field="capacity",
        offence=lambda pool: pool.pool.role if pool.pool.is_system else None,
        problem="The system pool cannot be {kind}.",
        consequence="It starts with no nodes, and its nodes are deleted after seven days at the latest: the "
        "cluster would have no DNS.",
        fix="Omit capacity for on-demand, or write capacity: spot.",
        source=f"{_QUEUED_DOCS}: keep one pool without",
    ),
    Row(
        name="shutdown grace needs spot",
        kinds=(OnDemand, Preemptible, FlexStart, Queued, Reservation),
        field="shutdownGrace",
        offence=_grace,
        problem="A {kind} pool has no shutdown grace.",
        consequence="Only spot nodes can have more than 30 seconds to shut down when they are preempted.",
        fix="Remove shutdownGrace, or write capacity: spot.",
        source=_GRACE_DOCS,
    ),
    Row(
        name="supported shutdown grace",
        kinds=(Spot,),
        field="shutdownGrace",
        offence=_grace_out_of_range,
        problem="{value} is not a supported shutdown grace period of a spot node.",
        fix="Write 0s, 30s or 120s, or omit it for 30s.",
        source="google-cloud-container, NodeKubeletConfig.shutdown_grace_period_seconds (2026); "
        "GoogleCloudPlatform/magic-modules#17556",
    ),
)


@cluster_rule("release channel needs auto-upgrade", "GKE docs, release-channels (2026)", CloudKind.GKE)
def _upgrades_on_a_channel(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if not isinstance(cloud, Gke) or cloud.existing is not None or cloud.release_channel == "none":
        return
    for index, pool in enumerate(cluster.pools):
        if pool.auto_upgrade is False:
            yield Fault(
                f"pools[{index}].autoUpgrade",
                f"The cluster is on the release channel {cloud.release_channel}, and autoUpgrade is false.",
                NO_GKE_POOL,
                "Remove autoUpgrade, or write releaseChannel: none.",
            )


@cluster_rule("queued and flex-start need another pool", _QUEUED_DOCS, CloudKind.GKE)
def _needs_another_pool(cluster: Cluster) -> Iterator[Fault]:
    scheduled = all(isinstance(pool.capacity, _SCHEDULED) for pool in cluster.pools)
    if cluster.cloud.existing is None and scheduled:
        yield Fault(
            "pools[0].capacity",
            f"There are only {cluster.pools[0].capacity.kind} pools.",
            "GKE needs a pool that is neither queued nor flex-start for its own pods.",
            "Add a system pool that is on-demand or spot.",
        )


@pool_rule(
    "spot has replaced preemptible", "GKE docs, preemptible-vms (2026)", CloudKind.GKE, Severity.WARNED
)
def _preemptible(pool: PoolIn) -> Iterator[Fault]:
    if isinstance(pool.pool.capacity, Preemptible):
        yield Fault(
            pool.at("capacity"),
            "Spot VMs have replaced preemptible VMs.",
            "Preemptible VMs are stopped after 24 hours at the latest, and cost the same.",
            "Write capacity: spot.",
        )


RULES = (*(PoolRule(row.name, row.source, row.check, CloudKind.GKE) for row in ROWS),)


@pool_rule("no spot system pool", f"{_SPOT_DOCS}; use-system-pools.md (2026-04-30)", CloudKind.AKS)
def _spot_is_no_system_pool(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.is_system and isinstance(pool.pool.capacity, Spot):
        yield Fault(
            pool.at("capacity"),
            "The system pool cannot be spot on AKS.",
            NO_CLUSTER,
            "Omit capacity for on-demand.",
        )


@pool_rule(
    "machine available as spot", "catalog/data/machine_series.csv, a source in each row", CloudKind.AKS
)
def _spot_of_a_series_that_has_it(pool: PoolIn) -> Iterator[Fault]:
    machine = pool.machine
    if isinstance(pool.pool.capacity, Spot) and machine is not None and not can_be_spot(machine.family):
        yield Fault(
            pool.at("capacity"),
            f"Azure does not offer {machine.name} as spot.",
            NO_POOL,
            "Write a machine of another series, such as Standard_D2as_v5, or omit capacity for on-demand.",
        )


@pool_rule("valid maximum price", _SPOT_DOCS, CloudKind.AKS)
def _max_price(pool: PoolIn) -> Iterator[Fault]:
    capacity = pool.pool.capacity
    price = capacity.max_price if isinstance(capacity, Spot) else None
    if price is None or price == -1:
        return
    exponent = Decimal(repr(price)).normalize().as_tuple().exponent
    if price > 0 and isinstance(exponent, int) and exponent >= -_DECIMALS:
        return
    wrong = "has more than five decimals" if price > 0 else "is neither -1 nor more than 0"
    yield Fault(
        pool.at("capacity.maxPrice"),
        f"maxPrice {price:.10f}".rstrip("0").rstrip(".") + f" {wrong}.",
        NO_POOL,
        "Write US dollars per hour with at most five decimals, such as 0.98765, or -1 for up to the list "
        "price.",
    )


@pool_rule(
    "no upgrade settings on spot", f"{_SPOT_DOCS}; hashicorp/terraform-provider-azurerm#29318", CloudKind.AKS
)
def _no_upgrade_on_spot(pool: PoolIn) -> Iterator[Fault]:
    if isinstance(pool.pool.capacity, Spot) and pool.pool.upgrade is not None:
        yield Fault(
            pool.at("upgrade"),
            "A spot pool on AKS has no upgrade settings.",
            "AKS upgrades spot nodes without surge and without draining them, and every later preview "
            "would show a change.",
            "Remove upgrade.",
        )


@pool_rule("spot eviction policy delete", f"{_SPOT_DOCS}; Azure/AKS#5589", CloudKind.AKS, Severity.WARNED)
def _deallocate(pool: PoolIn) -> Iterator[Fault]:
    capacity = pool.pool.capacity
    if isinstance(capacity, Spot) and capacity.eviction_policy == "Deallocate":
        yield Fault(
            pool.at("capacity.evictionPolicy"),
            "Evicted nodes are deallocated, not deleted.",
            "They still count against the quota, and the autoscaler waits for them instead of trying "
            "another pool.",
            "Write evictionPolicy: Delete, or omit it.",
        )
