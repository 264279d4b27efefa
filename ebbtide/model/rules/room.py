"""Room on the system pool for what is declared, and what could keep a node that nothing runs on."""

from collections.abc import Iterator

from ebbtide.catalog import CloudKind, Machine, Resources, cheapest, footprint, machine_price
from ebbtide.catalog.prices import lowest_price
from ebbtide.model.cluster import Cluster
from ebbtide.model.faults import Fault
from ebbtide.model.gpus import pools_left_to_us
from ebbtide.model.nodes import daemons, most_nodes, offered
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
_AKS_VCPUS = 4
_AKS_REFUSED = ("BS",)


def _copies(cluster: Cluster) -> dict[str, int]:
    """How often each add-on is there."""
    addons = cluster.addons
    return {
        "kueue": (addons.kueue.replicas if addons.kueue else 1) if cluster.has_kueue else 0,
        "pipelines": int(addons.pipelines is not None),
        "trainer": int(addons.trainer is not None),
        "katib": int(addons.katib is not None),
        "logs": int(addons.logs is not None),
        "gpu-operator": int(addons.drivers == "gpu-operator" and bool(pools_left_to_us(cluster))),
    }


def what_runs_there(cluster: Cluster) -> tuple[str, Resources]:
    """What runs once on the system pool, in words, and its requests (catalog/data/footprints.csv). The pods
    of a cluster that is there already have their place."""
    copies = _copies(cluster)
    existing = cluster.cloud.existing is not None
    need = Resources(0, 0) if existing else footprint(cluster.site.cloud.value).requests
    for item, times in copies.items():
        for _ in range(times):
            need += footprint(item).requests
    own = [] if existing else ["the cluster's own pods"]
    return both([*own, *(_ADDONS[item] for item, times in copies.items() if times)] or ["nothing"]), need


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
    share = Resources(once.cpu_m / nodes, once.memory_mib / nodes)
    need = share + daemons(pool, cluster.site, cluster.addons)
    least, without = (_AKS_VCPUS, _AKS_REFUSED) if cluster.site.cloud is CloudKind.AKS else (1, ())
    return cheapest(cluster.site.cloud, cluster.site.region, need, least_vcpus=least, without=without)


def price_text(machine: Machine, cluster: Cluster) -> str:
    """What a machine costs, at the end of a sentence; nothing where that is not known."""
    site = cluster.site
    price = machine_price(site.cloud, site.region, machine.name) or lowest_price(site.cloud, machine.name)
    return f" at {dollars(price.on_demand)} an hour" if price and price.on_demand else ""


def _holds(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster):
        one, most = offered(pool.pool, pool.site, cluster.addons), most_nodes(pool.pool)
        if not pool.pool.is_system or pool.pool.machine is None or one is None or not most:
            continue
        what, need = what_runs_there(cluster)
        there = Resources(one.cpu_m * most, one.memory_mib * most)
        if there.holds(need):
            continue
        machine = cheapest_home(cluster, most)
        fix = "Write a larger nodes.max."
        if machine is not None:
            nodes = f"{most} nodes" if most > 1 else "one node"
            fix = (
                f"Write machine: {machine.name}, the cheapest that holds it all on {nodes}"
                f"{price_text(machine, cluster)}, or a larger nodes.max."
            )
        yield Fault(
            pool.at("machine"),
            f"{most} x {pool.pool.machine.type} offer {amount_text(there)} beside what is on every node, "
            f"and {what} request {amount_text(need)}.",
            "Some of them would stay pending, or settle on work pools that then never reach zero.",
            fix,
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
        "what could keep a node",
        "kubernetes/autoscaler, FAQ: what types of pods can prevent a node from being removed (2026)",
        _what_is_there_already,
        severity=Severity.WARNED,
    ),
)
