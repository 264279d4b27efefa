"""The system pool: exactly one, with enough capacity for the pods that it runs."""

from collections.abc import Iterator
from dataclasses import replace

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.machine_offers import cheapest
from ebbtide.declaration.catalog.machines import AMD64, Machine
from ebbtide.declaration.catalog.prices import find_price, lowest_price
from ebbtide.declaration.catalog.resources import Footprint, Resources, footprint
from ebbtide.declaration.model.addons import Kueue
from ebbtide.declaration.model.cluster import Cluster, kueue_memory, pending_jobs
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Taint, TaintEffect
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    PoolIn,
    Severity,
    cluster_rule,
    dollars,
    pool_rule,
    pools_of,
)
from ebbtide.text import and_list, several
from ebbtide.values.cloud_kind import CloudKind

_AKS_DOCS = "azure-aks-docs use-system-pools.md (2026-04-30)"
_AKS_SIZES = "azure-aks-docs quotas-skus-regions.md (2026-08-03)"
_AKS_VCPUS, _AKS_MEMORY_GIB = 2, 4
_CRITICAL = "CriticalAddonsOnly"
_GKE_MANAGED = "components.gke.io/gke-managed-components"


def _workloads(cluster: Cluster) -> list[tuple[str, Footprint, int]]:
    """Return each add-on on the system pool with its title, footprint and number of instances."""
    add_ons = [
        (
            *(_kueue(cluster) if isinstance(add_on, Kueue) else (add_on.spec.title, add_on.spec.footprint)),
            add_on.copies,
        )
        for add_on in cluster.add_ons
        # AKS does not document the requests of its managed Kueue: as those of the chart.
        if add_on.is_installed or (isinstance(add_on, Kueue) and add_on.is_managed)
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
    for item in (item for _, item, copies in workloads for _ in range(copies)):
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
    site, spec = cluster.site, CLOUD_SPECS[cluster.site.cloud]
    excluded = spec.system_families_excluded
    return cheapest(site.cloud, site.region, need, least_vcpus=spec.system_vcpus, without=excluded)


def price_text(machine: Machine, cluster: Cluster) -> str:
    """Format a machine's price as the end of a sentence; empty if unknown."""
    site = cluster.site
    price = find_price(site.cloud, site.region, machine.name) or lowest_price(site.cloud, machine.name)
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
        fits = capacity is not None and capacity.holds(need)
        if machine is None or not fits or _holds_each_pod(pool.resolved, cluster):
            continue
        yield Fault(
            pool.at("machine"),
            f"All nodes together have capacity for {workloads}, and one {machine.type} is too small for "
            f"their largest pod, which requests {amount_text(largest_pod(cluster))}.",
            "That pod would stay pending, regardless of the number of nodes.",
            _larger(pool.resolved, cluster),
        )


@cluster_rule("exactly one system pool", f"{_AKS_DOCS}; GKE docs, isolate-workloads-dedicated-nodes (2026)")
def _exactly_one(cluster: Cluster) -> Iterator[Fault]:
    system = [pool.path for pool in pools_of(cluster) if pool.pool.is_system]
    if not system and cluster.cloud.existing is None:
        yield Fault(
            "pools",
            "No pool has the role system.",
            "Cluster DNS and the add-ons would stay pending, or run on the work pools.",
            "Add a pool such as {name: system, role: system, nodes: {max: 3}}; without a machine, the next "
            "error suggests one.",
        )
    for path in system[1:]:
        yield Fault(
            f"{path}.role",
            f"There is already a system pool, {system[0]}.",
            "Add-ons would be spread over both, and neither size could be checked.",
            "Remove role here.",
        )


@pool_rule(
    "system pool has amd64 nodes",
    "kubeflow/pipelines#13957 (2026-09): images for amd64 only; GKE docs, "
    "prepare-arm-workloads-for-deployment (2026)",
)
def _amd64(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.is_system and pool.resolved.architecture != AMD64:
        yield Fault(
            pool.at("machine"),
            f"{pool.resolved.machine_type} has Arm processors, and this is the system pool.",
            "Images of Kubeflow Pipelines exist for amd64 only, and on GKE system pods without a toleration "
            "for Arm nodes would stay pending.",
            f"Write a machine type with amd64 processors, such as "
            f"{CLOUD_SPECS[pool.site.cloud].machine_example}, and a work pool of Arm machines.",
        )


@cluster_rule(
    "system pool has machine type", "catalog/data/footprints.csv and prices.csv, a source in each row"
)
def _missing_machine(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster):
        if not pool.pool.is_system or pool.pool.machine is not None:
            continue
        workloads, requests = system_pods(cluster)
        need = requests + pool.resolved.daemon_requests
        machine = cheapest_system_machine(cluster)
        fix = "Write a larger machine type than the catalog has."
        if machine is not None:
            cost = price_text(machine, cluster)
            holds = f"the cheapest with capacity for {workloads} ({amount_text(need)}){cost}"
            fix = f"Write machine: {machine.name}, {holds}."
        yield Fault(
            pool.at("machine"),
            "The system pool has no machine type.",
            "The cloud would choose one, which may be too small for the system pods.",
            fix,
        )


@pool_rule("no accelerators in system pool", "kubernetes/autoscaler#2377; nebari-dev/nebari#2507")
def _no_accelerators(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.resolved.accelerator_type
    if pool.pool.is_system and accelerator:
        yield Fault(
            pool.at("accelerator" if pool.pool.accelerator else "machine"),
            f"The system pool has accelerators, {accelerator}.",
            "They would be paid for all the time, and system pods do not use them.",
            "Write a machine without accelerators, and add a work pool for them.",
        )


@pool_rule("AKS system pool minimum vCPUs", _AKS_SIZES, CloudKind.AKS)
def _aks_size(pool: PoolIn) -> Iterator[Fault]:
    machine = pool.machine
    if not pool.pool.is_system or machine is None:
        return
    if machine.vcpus < _AKS_VCPUS or machine.memory_gib < _AKS_MEMORY_GIB:
        yield Fault(
            pool.at("machine"),
            f"{machine.name} has {several(machine.vcpus, 'vCPU')} and {machine.memory_gib:g} GiB, too few "
            "for AKS.",
            NO_CLUSTER,
            "Write a larger machine, such as Standard_D4as_v5.",
        )


@pool_rule("AKS system pool recommended machine", _AKS_DOCS, CloudKind.AKS, Severity.WARNED)
def _aks_supported(pool: PoolIn) -> Iterator[Fault]:
    machine, spec = pool.machine, CLOUD_SPECS[CloudKind.AKS]
    if not pool.pool.is_system or machine is None:
        return
    burstable = machine.family in spec.system_families_excluded or machine.name.startswith("Standard_B")
    if burstable or machine.vcpus < spec.system_vcpus:
        wrong = "of the B series" if burstable else f"of {machine.vcpus} vCPUs"
        yield Fault(
            pool.at("machine"),
            f"The system pool's machine is {wrong}, which AKS accepts and Microsoft does not support.",
            "System pods may be throttled or stay pending, and Azure support may decline a request.",
            f"Write a machine of another series with {spec.system_vcpus} vCPUs, such as Standard_D4as_v5, "
            "unless this is a test cluster.",
        )


def _repelling(pool: PoolIn, tolerated: str) -> Iterator[tuple[str, Taint]]:
    """Yield the taints of a system pool that keep system pods off, but one that they tolerate."""
    for index, taint in enumerate((pool.pool.taints or ()) if pool.pool.is_system else ()):
        if taint.key != tolerated and taint.effect is not TaintEffect.PREFER_NO_SCHEDULE:
            yield pool.at(f"taints[{index}]"), taint


@pool_rule("AKS system pool taints", "Azure/AKS#2578 (2021-10)", CloudKind.AKS)
def _aks_taints(pool: PoolIn) -> Iterator[Fault]:
    for path, taint in _repelling(pool, _CRITICAL):
        yield Fault(
            path,
            f"AKS refuses the taint {taint} on a system pool.",
            "The cluster could not be created (SystemPoolHasRestrictedTaint).",
            "Omit taints for CriticalAddonsOnly, or write the effect PreferNoSchedule.",
        )


@pool_rule(
    "GKE system pool taints",
    "GKE docs, isolate-workloads-dedicated-nodes (2026)",
    CloudKind.GKE,
    Severity.WARNED,
)
def _gke_taints(pool: PoolIn) -> Iterator[Fault]:
    for path, taint in _repelling(pool, _GKE_MANAGED):
        yield Fault(
            path,
            f"Not all of GKE's own pods tolerate the taint {taint}.",
            "The others would stay pending, or run on work pools, which then could not scale to zero.",
            "Remove taints, or write the effect PreferNoSchedule.",
        )
