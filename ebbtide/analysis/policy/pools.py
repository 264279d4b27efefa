"""Rules for limits of the policy (cost, regions, machine types, lifetime) and for node pools: taints,
scaling to zero, spot machines."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from ebbtide.analysis.charges import footprints_with_disks
from ebbtide.analysis.policy.protection import is_ephemeral
from ebbtide.analysis.policy.rule import WHOLE, Reviewed, Rule, RuleFinding, of_cluster, of_pool, pod_spec
from ebbtide.analysis.policy.settings import Level
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.recording import Resource
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH, total
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.model.expiry import COMPONENT
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.text import bound
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.selectors import selects, untolerated

LONGEST_LIFETIME: Final = "longest-lifetime"
"""Id of the rule for the maximum lifetime."""
_SET: Final = "Mandatory, because it has no effect until its limit is set."


_PERIODS: Final = {"hour": 1, "month": HOURS_PER_MONTH}
_PREEMPTED: Final = frozenset({"spot", "preemptible"})
_STATEFUL_SET: Final = "kubernetes:apps/v1:StatefulSet"
_POOL_LABELS: Final = ("cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "agentpool")
"""Labels with the pool's name that the clouds add."""
_ON_DEMAND: Final = "Run it on an on-demand pool."


def _cost(stack: Reviewed, name: str, words: str) -> Iterator[RuleFinding]:
    amount = total(getattr(charge, name) for charge in stack.charges)
    for period, hours in _PERIODS.items():
        limit: float | None = getattr(stack.limits, f"{name}_usd_per_{period}")
        if limit is None:
            continue
        if round(amount.known * hours, 6) > limit:
            least = bound(amount.unknown, amount.estimated)
            message = (
                f"The stack costs {least}{amount.known * hours:.2f} USD per {period} {words}; the limit is "
                f"{limit:.12g}. Lower node counts or choose cheaper machines, or raise the limit."
            )
            yield RuleFinding(WHOLE, message)
        elif amount.unknown:
            message = (
                f"The cost {words} cannot be compared with the limit of {limit:.12g} USD per {period}: "
                f"no price is known for {', '.join(amount.unknown)}."
            )
            yield RuleFinding(WHOLE, message, is_undecided=True)


@partial(
    Rule,
    id="idle-cost",
    title="The cost without work is within limits.idleUsdPerHour and idleUsdPerMonth.",
    level=Level.MANDATORY,
    reason=f"Idle cost is paid all the time. {_SET}",
    source="list prices of the catalog, each with its date",
)
def _idle_cost(stack: Reviewed) -> Iterator[RuleFinding]:
    return _cost(stack, "idle", "without work")


@partial(
    Rule,
    id="maximum-cost",
    title="The cost at the maximum node counts is within limits.maximumUsdPerHour and maximumUsdPerMonth.",
    level=Level.MANDATORY,
    reason=f"The maximum node counts are the only bound of an autoscaled cluster's bill. {_SET}",
    source="list prices of the catalog, each with its date",
)
def _maximum_cost(stack: Reviewed) -> Iterator[RuleFinding]:
    return _cost(stack, "maximum", "at the maximum node counts")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


@partial(
    Rule,
    id="approved-regions",
    title="Clusters and pools are in limits.regions.",
    level=Level.MANDATORY,
    reason=f"Data residency, quota and price depend on the region. {_SET}",
    source="the policy's own list",
)
def _approved_regions(stack: Reviewed) -> Iterator[RuleFinding]:
    approved = stack.limits.regions
    if approved is None:
        return
    places = [
        *((of_cluster(cluster), cluster.location) for cluster in stack.clusters),
        *((of_pool(pool), zone) for pool in stack.pools for zone in pool.zones or (pool.site.location,)),
    ]
    clusters = {cluster.location for cluster in stack.clusters}
    for subject, location in places:
        # AKS writes zones as numbers; the cluster's own region is reported once.
        is_repeated = subject.kind == "pool" and location in clusters
        if not location or location.isdigit() or is_repeated:
            continue
        if not (_matches(location, approved) or _matches(region_of(location), approved)):
            yield RuleFinding(subject, f"{location} is not approved; approved: {', '.join(approved)}.")


@partial(
    Rule,
    id="approved-machines",
    title="Machine types are in limits.machines.",
    level=Level.MANDATORY,
    reason=f"Quota and budget are granted by machine family. {_SET}",
    source="the policy's own list",
)
def _approved_machines(stack: Reviewed) -> Iterator[RuleFinding]:
    approved = stack.limits.machines
    if approved is None:
        return
    for pool in stack.pools:
        if not _matches(pool.machine_type, approved):
            message = (
                f"The machine type {pool.machine_type} is not approved; approved: {', '.join(approved)}."
            )
            yield RuleFinding(of_pool(pool), message)


@partial(
    Rule,
    id="lifetime",
    title="Stacks named in limits.ephemeralStacks have a lifetime.",
    level=Level.MANDATORY,
    reason="A forgotten cluster of a review keeps being billed.",
    source="the label ebbtide-expires, by which expired clusters are found",
)
def _lifetime(stack: Reviewed) -> Iterator[RuleFinding]:
    if not _matches(stack.recording.stack, stack.limits.ephemeral_stacks):
        return
    for cluster in stack.clusters:
        if not is_ephemeral(stack.recording[cluster.urn]):
            message = f"The stack {stack.recording.stack} is ephemeral by its name, and has no lifetime. "
            yield RuleFinding(of_cluster(cluster), f"{message}Write lifetime: {{hours: 8}}, for example.")


@partial(
    Rule,
    id=LONGEST_LIFETIME,
    title="Lifetimes are within limits.lifetimeHours.",
    level=Level.MANDATORY,
    reason=f"A cluster that never expires is not ephemeral. {_SET}",
    source="the policy's own limit",
)
def _longest_lifetime(stack: Reviewed) -> Iterator[RuleFinding]:
    limit = stack.limits.lifetime_hours
    if limit is None:
        return
    for lifetime in stack.recording.of_type(COMPONENT):
        hours = Inputs(lifetime.inputs).number("hours")
        if hours is not None and hours > limit:
            message = f"The lifetime is {hours} hours; the limit is {limit}. Declare a shorter one."
            yield RuleFinding(WHOLE, message)


@partial(
    Rule,
    id="work-pools-tainted",
    title="Work pools are tainted.",
    level=Level.MANDATORY,
    reason="A system pod on a work pool prevents the scale-down of a GPU node.",
    source="cluster-autoscaler FAQ, what prevents scale-down (2026)",
)
def _work_pools_tainted(stack: Reviewed) -> Iterator[RuleFinding]:
    """On GKE, an untainted pool with a node is recorded as a system pool; only the first is one."""
    clusters: set[str] = set()
    for pool in stack.pools:
        if pool.labels_and_taints.repelling:
            continue
        if pool.is_system:
            is_first = pool.cluster not in clusters
            clusters.add(pool.cluster)
            if is_first or pool.site.cloud is CloudKind.AKS:
                continue
        # A preferred taint is a choice, of which preview warns.
        if not pool.labels_and_taints.all_taints:
            message = (
                "It has no taint, so any pod can be scheduled on it and keep its nodes. Add a taint with the "
                "effect NoSchedule."
            )
            yield RuleFinding(of_pool(pool), message)


@partial(
    Rule,
    id="work-pools-from-zero",
    title="Work pools scale to zero.",
    level=Level.ADVISORY,
    reason="A minimum is paid all the time. Advisory, since a warm node may be worth its price.",
    source="docs/architecture.md",
)
def _work_pools_from_zero(stack: Reviewed) -> Iterator[RuleFinding]:
    for pool in stack.pools:
        if not pool.is_system and pool.idle_nodes:
            yield RuleFinding(of_pool(pool), f"It keeps {pool.idle_nodes} nodes without work. Write min: 0.")


@partial(
    Rule,
    id="spot-system",
    title="System pools do not run on spot machines.",
    level=Level.ADVISORY,
    reason="A preemption stops cluster DNS and Kueue until a new node is ready; running work continues. "
    "Advisory, since a cluster for some hours, such as this repository's stack dev, may accept "
    "that for the price.",
    source="cloud.google.com/kubernetes-engine/docs, spot-vms (2026): not for system workloads",
)
def _spot_system(stack: Reviewed) -> Iterator[RuleFinding]:
    for pool in stack.pools:
        if pool.is_system and pool.capacity.kind in _PREEMPTED:
            message = f"Its machines are {pool.capacity.kind}. A preemption interrupts cluster DNS and Kueue."
            yield RuleFinding(
                of_pool(pool), f"{message} Write capacity: on-demand unless that is acceptable."
            )


@partial(
    Rule,
    id="spot-stateful",
    title="Stateful workloads do not run on spot machines.",
    level=Level.MANDATORY,
    reason="A preempted database may lose writes, and is unavailable until it has restarted.",
    source="cloud.google.com/kubernetes-engine/docs, spot-vms (2026): for stateless workloads",
)
def _spot_stateful(stack: Reviewed) -> Iterator[RuleFinding]:
    pools = [pool for pool in stack.pools if pool.capacity.kind in _PREEMPTED]
    for type_ in footprints_with_disks():
        for component in stack.recording.of_type(type_):
            for pool in pools:
                if pool.is_system:
                    message = f"Its database and its store run on the {pool.capacity.kind} pool {pool.name}."
                    yield RuleFinding(stack.subject(component), f"{message} {_ON_DEMAND}")
    for resource in stack.recording:
        if not resource.read and _is_stateful(resource) and (spec := pod_spec(resource)):
            for pool in pools:
                if _is_schedulable(spec, pool):
                    message = f"It has volumes, and may run on the {pool.capacity.kind} pool {pool.name}."
                    yield RuleFinding(stack.subject(resource), f"{message} {_ON_DEMAND}")


def _is_stateful(resource: Resource) -> bool:
    """Check for a StatefulSet, or a Deployment that mounts a claim; files of a Job are checkpoints."""
    if resource.type == _STATEFUL_SET:
        return True
    spec = pod_spec(resource) if resource.type == "kubernetes:apps/v1:Deployment" else None
    return spec is not None and any(volume.has("persistentVolumeClaim") for volume in spec.parts("volumes"))


def _is_schedulable(spec: Inputs, pool: ResolvedPool) -> bool:
    """Check tolerations and node selector of a pod; labels that the cloud adds are assumed to match."""
    labels = {**pool.labels, **dict.fromkeys(_POOL_LABELS, pool.name)}
    selector = {"matchLabels": spec.labels("nodeSelector")}
    if selects(selector, labels, is_unknown=lambda _: True) is False:
        return False
    pod = {"tolerations": spec.objects("tolerations")}
    return not any(untolerated(pod, pool.labels_and_taints.all_taints))
