"""AKS rules for spot pools, ephemeral disks, numbers of pools and nodes, and upgrades."""

from collections.abc import Iterator
from decimal import Decimal

from ebbtide.declaration.catalog import LARGEST_EPHEMERAL_GIB, CloudKind, can_be_spot, ephemeral_gib
from ebbtide.declaration.model.capacity import Spot
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, cluster_rule, pool_rule, pools_of
from ebbtide.text import and_list

_SPOT_DOCS = "azure-aks-docs spot-node-pool.md (2025-04-06)"
_UPGRADE_DOCS = "azure-aks-docs upgrade-aks-node-pools-rolling.md (2026-05-29)"
_DECIMALS = 5
_NO_POOL = "The node pool could not be created."
_LIMITS = "azure-aks-docs quotas-skus-regions.md (2026-08-03), container-service-limits"
_MOST_NODES = 1000
_MOST_IN_CLUSTER = {"free": 1000, "standard": 5000, "premium": 5000}
_MOST_POOLS = 100
_PROXIMITY = "proximityPlacementGroupID"


@pool_rule("no spot system pool", f"{_SPOT_DOCS}; use-system-pools.md (2026-04-30)", CloudKind.AKS)
def _spot_is_no_system_pool(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.is_system and isinstance(pool.pool.capacity, Spot):
        yield Fault(
            pool.at("capacity"),
            "The system pool cannot be spot on AKS.",
            "The cluster could not be created.",
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
            _NO_POOL,
            "Write a machine of another series, such as Standard_D2as_v5, or omit capacity for on-demand.",
        )


@pool_rule(
    "ephemeral disk fits machine",
    "azure-aks-docs concepts-storage.md (2026-07-30); catalog/data/ephemeral.csv, a source in each row",
    CloudKind.AKS,
)
def _ephemeral_disk_fits(pool: PoolIn) -> Iterator[Fault]:
    machine = pool.machine
    disk = pool.resolved.disk
    if machine is None or disk.type != "ephemeral" or disk.size_gib is None:
        return
    known = ephemeral_gib(machine.name)
    limit = LARGEST_EPHEMERAL_GIB if known is None else known
    if limit == 0:
        yield Fault(
            pool.at("disk.type"),
            f"{machine.name} has neither a cache nor a temporary disk for an ephemeral OS disk.",
            _NO_POOL,
            "Write type: managed, or omit it, or write a machine such as Standard_D4ds_v5.",
        )
    elif disk.size_gib > limit:
        yield Fault(
            pool.at("disk.sizeGib"),
            f"{machine.name} supports an ephemeral disk of at most {limit} GiB, and sizeGib is "
            f"{disk.size_gib}.",
            _NO_POOL,
            f"Write sizeGib: {limit} or less, or omit type for a managed disk.",
        )


@cluster_rule("maximum pools in AKS cluster", _LIMITS, CloudKind.AKS)
def _not_too_many_pools(cluster: Cluster) -> Iterator[Fault]:
    number = len(cluster.pools)
    if number > _MOST_POOLS:
        yield Fault(
            "pools",
            f"A cluster on AKS has at most {_MOST_POOLS} node pools, and {number} are declared.",
            "The last ones could not be created.",
            "Declare fewer pools, or a second cluster.",
        )


@pool_rule("maximum nodes in AKS pool", _LIMITS, CloudKind.AKS)
def _not_too_many_nodes(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    for field, number in (("max", nodes.max), ("count", nodes.count)):
        if number is not None and number > _MOST_NODES:
            yield Fault(
                pool.at(f"nodes.{field}"),
                f"A node pool on AKS has at most {_MOST_NODES} nodes, and {field} is {number}.",
                _NO_POOL,
                f"Write {field}: {_MOST_NODES} or less, and add a second pool for more nodes.",
            )


@cluster_rule(
    "maximum nodes in AKS cluster",
    "azure-aks-docs core-aks-concepts.md (2026-07-29), free-standard-pricing-tiers.md (2026-07-06)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _too_many_nodes_together(cluster: Cluster) -> Iterator[Fault]:
    if not isinstance(cluster.cloud, Aks) or cluster.cloud.existing is not None:
        return
    tier, number = cluster.cloud.tier, sum(pool.max_nodes for pool in cluster.resolved_pools)
    most = _MOST_IN_CLUSTER[tier]
    if number > most:
        larger = "tier: standard, " if tier == "free" else ""
        yield Fault(
            "pools",
            f"A cluster of the tier {tier} has at most {most} nodes, and the pools may have {number}.",
            "Pools could not scale beyond that number.",
            f"Write {larger}smaller pools, or a second cluster.",
        )


@cluster_rule(
    "proximity placement group in one zone",
    "azure-aks-docs reduce-latency-ppg.md (2023-06-19)",
    CloudKind.AKS,
)
def _one_zone(cluster: Cluster) -> Iterator[Fault]:
    zones_of_group: dict[str, set[str]] = {}
    for pool in pools_of(cluster):
        group = pool.pool.overrides.get(_PROXIMITY)
        if not isinstance(group, str):
            continue
        zones = zones_of_group.setdefault(group.lower(), set())
        zones |= {*pool.pool.zones}
        if len(zones) > 1:
            yield Fault(
                pool.at(f"overrides.{_PROXIMITY}"),
                "A proximity placement group is in one zone, and its nodes are declared in zones "
                f"{and_list(sorted(zones))}.",
                _NO_POOL,
                "Write one zone under zones, and another group for each other zone.",
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
        "The node pool could not be created.",
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


@pool_rule(
    "upgrade surge or unavailable nodes",
    f"{_UPGRADE_DOCS}; cluster-toolkit modules/compute/gke-node-pool/main.tf@01a7a3ed, preconditions",
)
def _upgrade_takes_a_node_at_a_time(pool: PoolIn) -> Iterator[Fault]:
    upgrade = pool.pool.upgrade
    if upgrade is not None and upgrade.max_surge == 0 and not upgrade.max_unavailable:
        yield Fault(
            pool.at("upgrade.maxSurge"),
            "maxSurge and maxUnavailable are both 0: an upgrade can neither add nor remove a node.",
            "The cloud refuses the settings.",
            "Write maxSurge: 1 or more.",
        )


@pool_rule("no unavailable system nodes", _UPGRADE_DOCS, CloudKind.AKS)
def _nothing_missing_from_the_system_pool(pool: PoolIn) -> Iterator[Fault]:
    upgrade = pool.pool.upgrade
    if pool.pool.is_system and upgrade is not None and upgrade.max_unavailable:
        yield Fault(
            pool.at("upgrade.maxUnavailable"),
            "AKS does not allow unavailable nodes in a system pool during an upgrade.",
            "The cluster could not be created.",
            "Remove maxUnavailable, and write maxSurge: 1 or more.",
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
