"""Room on the system pool for what is declared, and what could keep a node that nothing runs on."""

from collections.abc import Iterator

from ebbtide.catalog import CLOUD_SPECS, Machine, Resources, cheapest, footprint, machine_price
from ebbtide.catalog.prices import lowest_price
from ebbtide.model.cluster import Cluster
from ebbtide.model.faults import Fault
from ebbtide.model.gpus import pools_left_to_us
from ebbtide.model.nodes import daemons, most_nodes, offered
from ebbtide.model.pool import Pool
from ebbtide.model.rules.rule import ClusterRule, Severity, pools_of
from ebbtide.model.rules.words import both, dollars

_ADDONS = {
    "kueue": "Kueue",
    "pipelines": "Kubeflow Pipelines",
    "trainer": "Kubeflow Trainer",
    "katib": "Katib",
    "logs": "Container insights",
    "gpu-operator": "NVIDIA's operator",
}


def _copies(cluster: Cluster) -> dict[str, int]:
    """Number of instances of each add-on."""
    addons = cluster.addons
    return {
        "kueue": (addons.kueue.replicas if addons.kueue else 1) if cluster.has_kueue else 0,
        "pipelines": int(addons.installed_pipelines is not None),
        "trainer": int(addons.trainer is not None),
        "katib": int(addons.katib is not None),
        "logs": int(addons.logs is not None),
        "gpu-operator": int(addons.drivers == "gpu-operator" and bool(pools_left_to_us(cluster))),
    }


def what_runs_there(cluster: Cluster) -> tuple[str, Resources]:
    """List the pods that run once on the system pool, in words, with their requests
    (catalog/data/footprints.csv). Those of an existing cluster are already placed."""
    copies = _copies(cluster)
    existing = cluster.cloud.existing is not None
    need = Resources(0, 0) if existing else footprint(cluster.site.cloud.value).requests
    for item, times in copies.items():
        for _ in range(times):
            need += footprint(item).requests
    own = [] if existing else ["the cluster's own pods"]
    return both([*own, *(_ADDONS[item] for item, times in copies.items() if times)] or ["nothing"]), need


def largest_pod(cluster: Cluster) -> Resources:
    """The most of each that any one pod of what runs on the system pool requests."""
    items = [item for item, times in _copies(cluster).items() if times]
    if cluster.cloud.existing is None:
        items.append(cluster.site.cloud.value)
    each = [footprint(item).most for item in items]
    return Resources(
        max((one.cpu_m for one in each), default=0), max((one.memory_mib for one in each), default=0)
    )


def amount_text(amount: Resources) -> str:
    """An amount in a sentence."""
    return f"{amount.cpu_m / 1000:.1f} CPU and {amount.memory_mib / 1024:.1f} GiB"


def cheapest_home(cluster: Cluster, nodes: int = 1) -> Machine | None:
    """The cheapest machine type of which so many hold what runs on the system pool; None where no type
    does."""
    pool = next((pool for pool in cluster.pools if pool.is_system), None)
    if pool is None:
        return None
    _, once = what_runs_there(cluster)
    pod = largest_pod(cluster)
    share = Resources(max(pod.cpu_m, once.cpu_m / nodes), max(pod.memory_mib, once.memory_mib / nodes))
    need = share + daemons(pool, cluster.site, cluster.addons)
    spec = CLOUD_SPECS[cluster.site.cloud]
    return cheapest(
        cluster.site.cloud,
        cluster.site.region,
        need,
        least_vcpus=spec.system_vcpus,
        without=spec.system_families_excluded,
    )


def price_text(machine: Machine, cluster: Cluster) -> str:
    """Return a machine's price as the end of a sentence; empty if unknown."""
    site = cluster.site
    price = machine_price(site.cloud, site.region, machine.name) or lowest_price(site.cloud, machine.name)
    return f" at {dollars(price.on_demand)} an hour" if price and price.on_demand else ""


def _sum(pool: Pool, cluster: Cluster) -> Resources | None:
    """Return the capacity of all nodes of a system pool; None if unknown."""
    one, most = offered(pool, cluster.site, cluster.addons), most_nodes(pool)
    if not pool.is_system or pool.machine is None or one is None or not most:
        return None
    return Resources(one.cpu_m * most, one.memory_mib * most)


def _holds_each_pod(pool: Pool, cluster: Cluster) -> bool:
    one = offered(pool, cluster.site, cluster.addons)
    return one is None or one.holds(largest_pod(cluster))


def _larger(pool: Pool, cluster: Cluster) -> str:
    """Return the correction of a system pool that is too small. More nodes help only if each pod fits one."""
    most = most_nodes(pool)
    machine = cheapest_home(cluster, most)
    more = ", or a larger nodes.max" if _holds_each_pod(pool, cluster) else ""
    if machine is None:
        return "Write a larger nodes.max." if more else "Write a larger machine."
    nodes = f"{most} nodes" if most > 1 else "one node"
    return (
        f"Write machine: {machine.name}, the cheapest that holds it all on {nodes}"
        f"{price_text(machine, cluster)}{more}."
    )


def _holds(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster):
        there, machine = _sum(pool.pool, cluster), pool.pool.machine
        what, need = what_runs_there(cluster)
        if there is None or machine is None or there.holds(need):
            continue
        yield Fault(
            pool.at("machine"),
            f"{most_nodes(pool.pool)} x {machine.type} offer {amount_text(there)} beside what is on every "
            f"node, and {what} request {amount_text(need)}.",
            "Some of them would stay pending, or settle on work pools that then never reach zero.",
            _larger(pool.pool, cluster),
        )


def _holds_each(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster):
        there, machine = _sum(pool.pool, cluster), pool.pool.machine
        what, need = what_runs_there(cluster)
        if there is None or machine is None or not there.holds(need) or _holds_each_pod(pool.pool, cluster):
            continue
        yield Fault(
            pool.at("machine"),
            f"All nodes together hold {what}, and one {machine.type} does not hold their largest pod: they "
            f"request up to {amount_text(largest_pod(cluster))}.",
            "It would stay pending, however many nodes there are.",
            _larger(pool.pool, cluster),
        )


def _what_is_there_already(cluster: Cluster) -> Iterator[Fault]:
    if cluster.cloud.existing is None or not cluster.work_pools:
        return
    yield Fault(
        "cloud.existing",
        f"What runs on {cluster.cloud.existing.name} already is not looked at.",
        "A pod of it that tolerates every taint, and has no controller, keeps local data or may not be "
        "evicted, keeps a work node for as long as it is there.",
        "Where a node stays, look with `kubectl get pods -A --field-selector spec.nodeName=NODE`.",
    )


RULES: tuple[ClusterRule, ...] = (
    ClusterRule(
        "a system pool that holds what is declared",
        "catalog/data/footprints.csv, a source in each row",
        _holds,
    ),
    ClusterRule(
        "a system pool whose nodes hold each pod",
        "catalog/data/footprints.csv, a source in each row",
        _holds_each,
    ),
    ClusterRule(
        "what could keep a node",
        "kubernetes/autoscaler, FAQ: what types of pods can prevent a node from being removed (2026)",
        _what_is_there_already,
        severity=Severity.WARNED,
    ),
)
