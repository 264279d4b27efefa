"""Rules for free capacity on the system pool, and pods that keep an idle node."""

from collections.abc import Iterator
from dataclasses import replace

from ebbtide.declaration.catalog import (
    CLOUD_SPECS,
    Footprint,
    Machine,
    Resources,
    cheapest,
    footprint,
    machine_price,
)
from ebbtide.declaration.catalog.prices import lowest_price
from ebbtide.declaration.model.addons import Kueue
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.queues import kueue_memory, pending_jobs
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule, dollars, pools_of
from ebbtide.text import and_list


def _workloads(cluster: Cluster) -> list[tuple[str, Footprint, int]]:
    """Return each add-on on the system pool with its title, footprint and number of instances."""
    add_ons = [
        (
            *(_kueue(cluster) if isinstance(add_on, Kueue) else (add_on.spec.title, add_on.spec.footprint)),
            add_on.copies,
        )
        for add_on in cluster.installed
    ]
    if cluster.addons.drivers == "gpu-operator" and cluster.driver_pools:
        add_ons.append(("NVIDIA's operator", footprint("gpu-operator"), 1))
    return add_ons


def _kueue(cluster: Cluster) -> tuple[str, Footprint]:
    """Return Kueue's title and footprint, whose memory follows from the Jobs that may wait."""
    title, least = Kueue.spec.title, Kueue.spec.footprint
    memory, _ = kueue_memory(cluster)
    if memory <= least.requests.memory_mib:
        return title, least
    requests = Resources(least.requests.cpu_m, memory)
    title = f"{title} for {pending_jobs(cluster)} pending Jobs"
    return title, replace(least, requests=requests, most=requests)


def system_pods(cluster: Cluster) -> tuple[str, Resources]:
    """Describe the cluster-wide pods on the system pool, and return their total requests
    (catalog/data/footprints.csv). Those of an existing cluster are already placed."""
    workloads = _workloads(cluster)
    existing = cluster.cloud.existing is not None
    need = Resources(0, 0) if existing else footprint(cluster.site.cloud.value).requests
    for _, item, copies in workloads:
        for _ in range(copies):
            need += item.requests
    own = [] if existing else ["the cluster's own pods"]
    return and_list([*own, *(title for title, _, _ in workloads)] or ["nothing"]), need


def largest_pod(cluster: Cluster) -> Resources:
    """Return the largest requests of a single pod on the system pool, by resource."""
    requests = [item.most for _, item, _ in _workloads(cluster)]
    if cluster.cloud.existing is None:
        requests.append(footprint(cluster.site.cloud.value).most)
    return Resources(
        max((request.cpu_m for request in requests), default=0),
        max((request.memory_mib for request in requests), default=0),
    )


def amount_text(amount: Resources) -> str:
    """Format an amount for messages."""
    return f"{amount.cpu_m / 1000:.1f} CPU and {amount.memory_mib / 1024:.1f} GiB"


def cheapest_system_machine(cluster: Cluster, nodes: int = 1) -> Machine | None:
    """Return the cheapest machine type with which `nodes` nodes fit the system pool's pods; None if there is
    none."""
    pool = cluster.system_pool
    if pool is None:
        return None
    _, requests = system_pods(cluster)
    pod = largest_pod(cluster)
    share = Resources(
        max(pod.cpu_m, requests.cpu_m / nodes), max(pod.memory_mib, requests.memory_mib / nodes)
    )
    need = share + pool.daemon_requests
    spec = CLOUD_SPECS[cluster.site.cloud]
    return cheapest(
        cluster.site.cloud,
        cluster.site.region,
        need,
        least_vcpus=spec.system_vcpus,
        without=spec.system_families_excluded,
    )


def price_text(machine: Machine, cluster: Cluster) -> str:
    """Format a machine's price as the end of a sentence; empty if unknown."""
    site = cluster.site
    price = machine_price(site.cloud, site.region, machine.name) or lowest_price(site.cloud, machine.name)
    return f" at {dollars(price.on_demand)} an hour" if price and price.on_demand else ""


def _sum(pool: ResolvedPool) -> Resources | None:
    """Return the total capacity of a system pool's nodes; None if unknown."""
    node, most = pool.offered, pool.max_nodes
    if not pool.is_system or pool.machine is None or node is None or not most:
        return None
    return Resources(node.cpu_m * most, node.memory_mib * most)


def _holds_each_pod(pool: ResolvedPool, cluster: Cluster) -> bool:
    return pool.offered is None or pool.offered.holds(largest_pod(cluster))


def _larger(pool: ResolvedPool, cluster: Cluster) -> str:
    """Return the fix for a system pool that is too small. More nodes help only if each pod fits on one."""
    most = pool.max_nodes
    machine = cheapest_system_machine(cluster, most)
    more = ", or a larger nodes.max" if _holds_each_pod(pool, cluster) else ""
    if machine is None:
        return "Write a larger nodes.max." if more else "Write a larger machine."
    nodes = f"{most} nodes" if most > 1 else "one node"
    return (
        f"Write machine: {machine.name}, the cheapest with capacity for them on "
        f"{nodes}{price_text(machine, cluster)}{more}."
    )


@cluster_rule("sufficient system pool", "catalog/data/footprints.csv, a source in each row")
def _holds(cluster: Cluster) -> Iterator[Fault]:
    workloads, need = system_pods(cluster)
    for pool in pools_of(cluster):
        capacity, machine = _sum(pool.resolved), pool.pool.machine
        if capacity is None or machine is None or capacity.holds(need):
            continue
        yield Fault(
            pool.at("machine"),
            f"{pool.resolved.max_nodes} x {machine.type} offer {amount_text(capacity)} after "
            f"DaemonSets, and {workloads} request {amount_text(need)}.",
            "Some of these pods would stay pending, or run on work pools, which then could not scale to "
            "zero.",
            _larger(pool.resolved, cluster),
        )


@cluster_rule("system nodes fit largest pod", "catalog/data/footprints.csv, a source in each row")
def _holds_each(cluster: Cluster) -> Iterator[Fault]:
    workloads, need = system_pods(cluster)
    for pool in pools_of(cluster):
        capacity, machine = _sum(pool.resolved), pool.pool.machine
        if (
            capacity is None
            or machine is None
            or not capacity.holds(need)
            or _holds_each_pod(pool.resolved, cluster)
        ):
            continue
        yield Fault(
            pool.at("machine"),
            f"All nodes together have capacity for {workloads}, and one {machine.type} is too small for "
            f"their largest pod, which requests {amount_text(largest_pod(cluster))}.",
            "That pod would stay pending, regardless of the number of nodes.",
            _larger(pool.resolved, cluster),
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
