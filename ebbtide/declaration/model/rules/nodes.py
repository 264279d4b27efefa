"""Counts of nodes, and what a pool of several nodes has: upgrades, pods per node, and the cost while idle."""

from collections.abc import Iterator

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.machines import HUGE_PAGES
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    NO_POOL,
    PoolIn,
    Severity,
    cluster_rule,
    dollars,
    pool_rule,
    pools_of,
    service_name,
)
from ebbtide.text import and_list, several
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at

_AKS_SYSTEM_PODS = 30
_GKE_NODES_IN_ZONE = 1000
_GKE_SURGE = 20
_NETWORK_TAGS = 64
_LARGE_GIB = 30
"""Memory from which GKE allows more of it in huge pages."""
_TOOLKIT = "cluster-toolkit modules/compute/gke-node-pool/main.tf@01a7a3ed, preconditions"
_LIMITS = "azure-aks-docs quotas-skus-regions.md (2026-08-03), container-service-limits"
_MOST_NODES = 1000
_MOST_IN_CLUSTER = {"free": 1000, "standard": 5000, "premium": 5000}
_MOST_POOLS = 100
_PROXIMITY = "proximityPlacementGroupID"
_UPGRADE_DOCS = "azure-aks-docs upgrade-aks-node-pools-rolling.md (2026-05-29)"


@pool_rule(
    "huge pages of machine",
    "GKE docs, node-system-config: huge pages (2026); catalog/data/machine_series.csv: huge_pages_1g",
    CloudKind.GKE,
)
def _huge_pages(pool: PoolIn) -> Iterator[Fault]:
    machine, series = pool.machine, pool.resolved.series
    if machine is None or not machine.huge_pages_mib:
        return
    at, gib = pool.at(f"overrides.{HUGE_PAGES}"), machine.huge_pages_mib / 1024
    if series and not series.huge_pages_1g and value_at(pool.pool.overrides, f"{HUGE_PAGES}.hugepageSize1g"):
        yield Fault(
            at,
            f"Machines of the {series.name} series have no huge pages of 1 GiB.",
            NO_POOL,
            "Write hugepageSize2m, or a machine of another series, such as c3-standard-8.",
        )
    share = 0.6 if machine.memory_gib < _LARGE_GIB else 0.8
    if gib > share * machine.memory_gib:
        yield Fault(
            at,
            f"Huge pages of {gib:g} GiB are more than {share:.0%} of the memory of {machine.name}.",
            NO_POOL,
            f"Write pages of at most {share * machine.memory_gib:g} GiB together.",
        )


@pool_rule("fixed count excludes limits", _TOOLKIT)
def _count_or_limits(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    if nodes.count is not None and (nodes.min is not None or nodes.max is not None):
        yield Fault(
            pool.at("nodes.count"),
            "The pool has both a fixed count and autoscaling limits.",
            "The cloud refuses a pool with both.",
            "Write either count, or min and max.",
        )


@pool_rule(
    "location policy needs autoscaler",
    "pulumi-gcp 10.2.0, NodePool.autoscaling.locationPolicy: a setting of the autoscaler",
    CloudKind.GKE,
)
def _location_policy(pool: PoolIn) -> Iterator[Fault]:
    count = pool.pool.nodes.count
    if count is not None and pool.pool.location_policy is not None:
        yield Fault(
            pool.at("locationPolicy"),
            f"The pool has a fixed count, and locationPolicy {pool.pool.location_policy} is a setting of the "
            "autoscaler.",
            "It would have no effect: GKE creates a fixed count evenly over the pool's zones.",
            f"Remove locationPolicy, or write nodes: {{max: {count}}}.",
        )


@pool_rule(
    "fixed count divisible by zones",
    "pulumi-gcp 10.2.0, NodePool.initialNodeCount: nodes in each zone",
    CloudKind.GKE,
)
def _count_fits_the_zones(pool: PoolIn) -> Iterator[Fault]:
    count, zones = pool.pool.nodes.count, pool.resolved.zone_count
    if count is not None and count % zones:
        even = (count // zones + 1) * zones
        yield Fault(
            pool.at("nodes.count"),
            f"{count} nodes cannot be spread evenly over {zones} zones.",
            f"GKE counts nodes per zone, and would create {count - count % zones} or {even}.",
            f"Write a multiple of {zones}, such as count: {even}, or write its zones.",
        )


@pool_rule("pool has node limit", "pulumi-gcp 10.2.0 and azure-native 3.29.0: autoscaling needs a maximum")
def _has_an_upper_limit(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    if nodes.count is None and nodes.max is None and pool.resolved.slice_nodes == 1:
        yield Fault(
            pool.at("nodes"),
            "The pool has no maximum number of nodes.",
            "Its cost and its quota would be unlimited.",
            "Write nodes: {max: 4}, or nodes: {count: 4} for a fixed number.",
        )


@pool_rule("min not above max", "gcloud CLI 556.0.0, GKE v1 API discovery: NodePoolAutoscaling")
def _min_not_above_max(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    if nodes.min is not None and nodes.max is not None and nodes.min > nodes.max:
        yield Fault(
            pool.at("nodes.min"),
            f"min {nodes.min} is above max {nodes.max}.",
            NO_POOL,
            f"Write min: {nodes.max} or less, or max: {nodes.min} or more.",
        )


@pool_rule("minimum system nodes", "Azure/AKS#2480; GKE docs, node-pools (2026): system pods need a node")
def _system_floor(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.is_system and pool.pool.nodes.min == 0:
        yield Fault(
            pool.at("nodes.min"),
            "A system pool cannot scale to zero nodes.",
            "Cluster DNS and the add-ons would stay pending.",
            "Write min: 1 or more.",
        )


@pool_rule(
    "multiple system nodes in production",
    "azure-aks-docs use-system-pools.md (2026-04-30): a production cluster; az aks create --node-count 1",
    CloudKind.AKS,
    Severity.WARNED,
)
def _recommended_system_nodes(pool: PoolIn) -> Iterator[Fault]:
    recommended, nodes = CLOUD_SPECS[pool.site.cloud].system_nodes, pool.pool.nodes
    counts = (("count", nodes.count), ("max", nodes.max), ("min", nodes.min))
    field = next((field for field, number in counts if number is not None and number < recommended), "")
    if pool.pool.is_system and field:
        yield Fault(
            pool.at(f"nodes.{field}"),
            f"The system pool may have a single node, and Microsoft requires at least {recommended} in "
            "production.",
            "While that node is replaced or fails, cluster DNS and the add-ons' webhooks are down.",
            f"Write {field}: {recommended} or more, unless this is a test cluster.",
        )


@pool_rule("maximum nodes in GKE zone", "GKE docs, quotas (2026)", CloudKind.GKE)
def _nodes_in_a_zone(pool: PoolIn) -> Iterator[Fault]:
    most = _GKE_NODES_IN_ZONE * pool.resolved.zone_count
    consequence = "The node pool could not be created, or could not scale beyond that number."
    return _beyond(pool, most, f"GKE has at most {_GKE_NODES_IN_ZONE} nodes in a zone", consequence)


def _beyond(pool: PoolIn, most: int, limit: str, consequence: str) -> Iterator[Fault]:
    """Yield the faults of more nodes than a pool may have."""
    nodes = pool.pool.nodes
    for field, number in (("max", nodes.max), ("count", nodes.count)):
        if number is not None and number > most:
            yield Fault(
                pool.at(f"nodes.{field}"),
                f"A node pool on {limit}, and {field} is {number}.",
                consequence,
                f"Write {field}: {most} or less, and add a second pool for more nodes.",
            )


@pool_rule(
    "whole nodes of upgrade", "gcloud CLI 556.0.0, GKE v1 API discovery: UpgradeSettings", CloudKind.GKE
)
def _whole_nodes(pool: PoolIn) -> Iterator[Fault]:
    upgrade = pool.pool.upgrade
    fields = {"maxSurge": upgrade.max_surge, "maxUnavailable": upgrade.max_unavailable} if upgrade else {}
    for field, value in fields.items():
        if isinstance(value, str):
            yield Fault(
                pool.at(f"upgrade.{field}"),
                f"{field} is {value}, and GKE supports only a number of nodes.",
                NO_POOL,
                f"Write a number, such as {field}: 1.",
            )


@pool_rule(
    "maximum surge nodes",
    "pulumi-gcp 10.2.0, container.NodePool upgradeSettings: at most 20 nodes at the same time",
    CloudKind.GKE,
)
def _surge(pool: PoolIn) -> Iterator[Fault]:
    upgrade = pool.pool.upgrade
    numbers = (upgrade.max_surge, upgrade.max_unavailable) if upgrade else ()
    together = sum(number for number in numbers if isinstance(number, int))
    if together > _GKE_SURGE:
        yield Fault(
            pool.at("upgrade"),
            f"{together} nodes are upgraded at the same time, and GKE supports at most {_GKE_SURGE}.",
            NO_POOL,
            f"Write maxSurge and maxUnavailable with a sum of {_GKE_SURGE} or less.",
        )


@pool_rule(
    "supported pods per node",
    "GKE docs, flexible-pod-cidr (2026); azure-aks-docs concepts-network-ip-address-planning.md (2026-04-16)",
)
def _pods_per_node(pool: PoolIn) -> Iterator[Fault]:
    least, most = CLOUD_SPECS[pool.site.cloud].pods_per_node
    pods = pool.pool.max_pods_per_node
    if pods is not None and not least <= pods <= most:
        yield Fault(
            pool.at("maxPodsPerNode"),
            f"{service_name(pool.site.cloud)} does not support {pods} pods per node.",
            NO_POOL,
            f"Write a number from {least} to {most}, or omit it.",
        )


@pool_rule(
    "minimum pods in AKS system pool",
    "azure-aks-docs use-system-pools.md (2026-04-30), concepts-network-ip-address-planning.md (2026-04-16)",
    CloudKind.AKS,
)
def _aks_system_pods(pool: PoolIn) -> Iterator[Fault]:
    pods, nodes = pool.pool.max_pods_per_node, pool.resolved.nodes
    fewest = nodes.count or nodes.min or 1
    least = CLOUD_SPECS[CloudKind.AKS].pods_per_node[0]
    if pool.pool.is_system and pods is not None and pods >= least and pods * fewest < _AKS_SYSTEM_PODS:
        yield Fault(
            pool.at("maxPodsPerNode"),
            f"{several(fewest, 'node')} with {pods} pods each can have {pods * fewest} pods, and a system "
            "pool needs 30.",
            NO_POOL,
            f"Write maxPodsPerNode: {-(-_AKS_SYSTEM_PODS // fewest)} or more.",
        )


@pool_rule(
    "work pool scales to zero",
    "kubernetes/autoscaler FAQ, scale-down; prices: catalog/data/prices.csv",
    severity=Severity.WARNED,
)
def _never_zero(pool: PoolIn) -> Iterator[Fault]:
    nodes, fewest = pool.pool.nodes, pool.pool.nodes.count or pool.pool.nodes.min
    if pool.pool.is_system or not fewest:
        return
    cost = "an unknown amount"
    node = pool.resolved.priced_node.machine_amount(pool.pool.capacity.kind)
    if not node.unknown:
        cost = f"at least {'about ' if node.estimated else ''}{dollars(node.known * fewest)} an hour"
    field, fix = ("count", "Write max instead of count") if nodes.count else ("min", "Omit min")
    yield Fault(
        pool.at(f"nodes.{field}"),
        f"The pool always has at least {several(str(fewest), 'node')}.",
        f"It costs {cost} while idle.",
        f"{fix}, so that it scales to zero.",
    )


@cluster_rule(
    "network tags of a node", "cloud.google.com/vpc/docs/add-remove-network-tags (2026-11)", CloudKind.GKE
)
def _network_tags(cluster: Cluster) -> Iterator[Fault]:
    common = cluster.cloud.network_tags if isinstance(cluster.cloud, Gke) else ()
    yield from _repeated_tags("cloud.networkTags", common)
    for pool in pools_of(cluster):
        own, path = pool.pool.network_tags, pool.at("networkTags")
        yield from _repeated_tags(path, own)
        count = len({*common, *own})
        if count > _NETWORK_TAGS:
            yield Fault(
                path if own else "cloud.networkTags",
                f"A node of {pool.pool.name} has {count} network tags, and Compute Engine supports at most "
                f"{_NETWORK_TAGS}.",
                NO_POOL,
                "Remove some of them.",
            )


def _repeated_tags(path: str, tags: tuple[str, ...]) -> Iterator[Fault]:
    for index, tag in enumerate(tags):
        if tag in tags[:index]:
            yield Fault(f"{path}[{index}]", f"The network tag {tag} is written twice.", NO_POOL, "Remove it.")


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
    return _beyond(pool, _MOST_NODES, f"AKS has at most {_MOST_NODES} nodes", NO_POOL)


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
        group = str(pool.pool.overrides.get(_PROXIMITY, "")).lower()
        zones = zones_of_group.setdefault(group, set())
        zones.update(pool.pool.zones if group else ())
        if len(zones) > 1:
            yield Fault(
                pool.at(f"overrides.{_PROXIMITY}"),
                "A proximity placement group is in one zone, and its nodes are declared in zones "
                f"{and_list(sorted(zones))}.",
                NO_POOL,
                "Write one zone under zones, and another group for each other zone.",
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
            NO_CLUSTER,
            "Remove maxUnavailable, and write maxSurge: 1 or more.",
        )


@cluster_rule(
    "workloads blocking scale-down",
    "kubernetes/autoscaler, FAQ: what types of pods can prevent a node from being removed (2026)",
    severity=Severity.WARNED,
)
def _existing_pods(cluster: Cluster) -> Iterator[Fault]:
    if cluster.cloud.existing is None or not cluster.work_pools:
        return
    yield Fault(
        "cloud.existing",
        f"Existing workloads on {cluster.cloud.existing.name} are not checked.",
        "A pod that tolerates every taint, and has no controller, has local data or must not be evicted, "
        "keeps a work node from being removed.",
        "If a node is not removed, list its pods with `kubectl get pods -A --field-selector "
        "spec.nodeName=NODE`.",
    )
