"""Queues: their pools, Kueue's limits and settings, and queues that fall back."""

from collections.abc import Iterator
from itertools import chain

from ebbtide.declaration.catalog.accelerators import resource_name
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS, COMPUTE_CLASS
from ebbtide.declaration.model.capacity import Queued, Spot
from ebbtide.declaration.model.cluster import FLAVORS_IN_A_GROUP, TAINTS_OF_A_FLAVOR, Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.rules.rule import KUEUE, Severity, cluster_rule, one_of, pools_of
from ebbtide.declaration.model.rules.system_pool import amount_text
from ebbtide.declaration.model.tenancy import Queue
from ebbtide.text import and_list, did_you_mean
from ebbtide.values.cloud_kind import CloudKind

_KUEUE = f"{KUEUE}, ClusterQueue v1beta2 (2026-08-20)"
_NAMED_FLAVOR = f"{KUEUE}, ResourceFlavor is cluster-scoped (2026-08-20)"
_CONFIG = f"{KUEUE}, apis/config/v1beta2, Integrations (2026-08-20)"
FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/jaxjob",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "pod",
    "deployment",
    "statefulset",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "sparkoperator.k8s.io/sparkapplication",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
)
"""Frameworks that Kueue supports itself."""
_GKE = "GKE docs, about-custom-compute-classes (2026)"
_EXPANDER = "kubernetes/autoscaler, cluster-autoscaler/expander/priority (2026)"
_GKE_PREFIXES = ("autopilot", "gke")
_AKS_PREFIX = "aks-"


@cluster_rule("queue pools exist", _KUEUE)
def _queues_name_pools(cluster: Cluster) -> Iterator[Fault]:
    roles = {pool.name: pool.is_system for pool in cluster.pools}
    work = [name for name, is_system in roles.items() if not is_system]
    for number, queue in enumerate(cluster.queues):
        for index, name in enumerate(queue.pools):
            path = f"queues[{number}].pools[{index}]"
            fix = one_of(work, "Declare a work pool first.")
            if name not in roles:
                problem = f"There is no pool {name}{did_you_mean(name, work)}"
                yield Fault(path, problem, "Work in the queue would wait indefinitely.", fix)
            elif roles[name]:
                problem = f"The queue contains the system pool, {name}."
                yield Fault(path, problem, "Jobs would displace system pods.", fix)
            elif name in queue.pools[:index]:
                problem = f"The pool {name} is in the queue twice."
                yield Fault(path, problem, "Kueue refuses duplicate flavors.", "Remove one of the two.")


@cluster_rule(
    "maximum pools in queue", "ebbtide/declaration/providers/schemas/kueue.csv: resourceGroups.flavors"
)
def _not_too_many_pools(cluster: Cluster) -> Iterator[Fault]:
    for index, queue in enumerate(cluster.resolved_queues):
        if len(queue.pools) > FLAVORS_IN_A_GROUP and not queue.fallback:
            yield Fault(
                f"queues[{index}].pools" if cluster.queues else "pools",
                f"The queue {queue.name} has {len(queue.pools)} pools.",
                f"Kueue supports at most {FLAVORS_IN_A_GROUP} flavors in a queue.",
                "Split the queue into several." if cluster.queues else "Write queues, each with fewer pools.",
            )


@cluster_rule("unique flavors", _NAMED_FLAVOR)
def _flavors_once(cluster: Cluster) -> Iterator[Fault]:
    owners = {f"{queue.name}.pools": f"the queue {queue.name}" for queue in cluster.fallback_queues}
    owners |= {pool.name: f"the pool {pool.name}" for pool in cluster.pools if not pool.resource_flavor}
    for number, pool in enumerate(cluster.pools):
        own = f"the pool {pool.name}"
        if pool.resource_flavor and owners.setdefault(pool.resource_flavor, own) != own:
            yield Fault(
                f"pools[{number}].resourceFlavor",
                f"{pool.resource_flavor} is the ResourceFlavor of {owners[pool.resource_flavor]}.",
                "Both would share its node labels and its quota.",
                "Write another name, or omit resourceFlavor.",
            )


@cluster_rule("named flavor in queue", _NAMED_FLAVOR)
def _flavors_in_queues(cluster: Cluster) -> Iterator[Fault]:
    queued = {name for queue in cluster.resolved_queues for name in queue.pools}
    for number, pool in enumerate(cluster.pools):
        fallback = cluster.fallback_of(pool.name)
        if pool.resource_flavor and (fallback or pool.name not in queued):
            why = f"the queue {fallback} has one of all its pools" if fallback else "it is in no queue"
            other = "" if pool.is_system else ", or declare a queue without fallback with the pool"
            yield Fault(
                f"pools[{number}].resourceFlavor",
                f"The pool {pool.name} has no ResourceFlavor of its own: {why}.",
                "The name would have no effect.",
                f"Omit resourceFlavor{other}.",
            )


@cluster_rule(
    "maximum taints in queue",
    "ebbtide/declaration/providers/schemas/kueue.csv: ResourceFlavor nodeTaints, tolerations",
)
def _not_too_many_taints(cluster: Cluster) -> Iterator[Fault]:
    paths = {pool.name: f"pools[{index}].taints" for index, pool in enumerate(cluster.pools)}
    taints = {pool.name: pool.labels_and_taints.all_taints for pool in cluster.resolved_pools}
    flavors: dict[str, tuple[str, set[Taint]]] = {}
    for number, queue in enumerate(cluster.resolved_queues):
        names = [name for name in queue.pools if name in taints]
        if queue.fallback:
            together = set(chain.from_iterable(taints[name] for name in names))
            flavors[queue.name] = (f"queues[{number}].pools", together)
        else:
            flavors |= {name: (paths[name], set(taints[name])) for name in names}
    for path, together in flavors.values():
        if len(together) > TAINTS_OF_A_FLAVOR:
            yield Fault(
                path,
                f"The nodes have {len(together)} different taints, with those that the cloud adds.",
                f"Kueue supports at most {TAINTS_OF_A_FLAVOR} taints of a flavor, and would refuse it.",
                "Remove some of them, or write one taint that stands for several.",
            )


@cluster_rule(
    "one accelerator type in queue",
    f"{_KUEUE}: the next flavor is taken when the first is full",
    severity=Severity.WARNED,
)
def _one_accelerator_type(cluster: Cluster) -> Iterator[Fault]:
    types = {pool.name: pool.accelerator_type for pool in cluster.resolved_pools}
    for index, queue in enumerate(cluster.queues):
        accelerators = list(dict.fromkeys(types[name] for name in queue.pools if types.get(name)))
        if len(accelerators) > 1:
            yield Fault(
                f"queues[{index}].pools",
                f"The pools of the queue have different accelerators, {and_list(accelerators)}.",
                "A job may get the slower type.",
                "Declare a queue for each type, unless jobs can use any of them.",
            )


@cluster_rule(
    "one architecture in queue",
    "GKE docs, prepare-arm-workloads-for-deployment (2026): an image for amd64 does not run on Arm nodes",
    severity=Severity.WARNED,
)
def _one_architecture(cluster: Cluster) -> Iterator[Fault]:
    by_name = {pool.name: pool.architecture for pool in cluster.resolved_pools}
    for index, queue in enumerate(cluster.queues):
        names = list(dict.fromkeys(by_name[name] for name in queue.pools if name in by_name))
        if len(names) > 1:
            yield Fault(
                f"queues[{index}].pools",
                f"The pools of the queue have different architectures, {and_list(names)}.",
                "An image for one of them fails on the nodes of the other with exec format error.",
                "Declare a queue for each, unless all images have both platforms.",
            )


@cluster_rule("known Kueue frameworks", _CONFIG)
def _known_frameworks(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.kueue is None:
        return
    for index, name in enumerate(cluster.addons.kueue.frameworks):
        if name not in FRAMEWORKS:
            yield Fault(
                f"addons.kueue.frameworks[{index}]",
                f"Kueue has no framework {name}{did_you_mean(name, FRAMEWORKS)}",
                "Kueue would not start, and no Job could be created in a queue's namespace.",
                "Write one of Kueue's names, such as ray.io/rayjob.",
            )


@cluster_rule("Kueue needs work pools", _KUEUE)
def _kueue_has_work(cluster: Cluster) -> Iterator[Fault]:
    if cluster.has_kueue and not cluster.resolved_queues:
        yield Fault(
            "addons.kueue",
            "Kueue is declared, and the cluster has no work pool.",
            "Kueue could not admit any work.",
            "Declare a work pool, or omit kueue.",
        )


@cluster_rule(
    "together needs queued pools",
    "GKE docs, provisioningrequest (2026-04): queued-provisioning.gke.io alone",
    CloudKind.GKE,
)
def _together_on_aks(cluster: Cluster) -> Iterator[Fault]:
    for index, queue in enumerate(cluster.queues):
        if queue.together:
            yield Fault(
                f"queues[{index}].together",
                "GKE provisions all nodes of a job together only in queued pools.",
                "The autoscaler would ignore the request, and the work would wait indefinitely.",
                "Remove together, and write capacity: queued on the pool.",
            )


@cluster_rule(
    "together on spot pools",
    "kubernetes/autoscaler, cluster-autoscaler/processors/provreq/pods_filter.go (2026)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _together_once(cluster: Cluster) -> Iterator[Fault]:
    spot = {pool.name for pool in cluster.pools if pool.capacity.kind == "spot"}
    for index, queue in enumerate(cluster.queues):
        for pool in queue.pools if queue.together else ():
            if pool in spot:
                yield Fault(
                    f"queues[{index}].together",
                    f"{pool} is a spot pool, and nodes are requested together only once, when work is "
                    "admitted.",
                    "A pod that is recreated after its node is reclaimed gets no new node: it waits until "
                    "another pod ends, or the whole job is queued again after an hour.",
                    "Omit together, unless waiting is better than running part of a job.",
                )


def _fallback_queues(cluster: Cluster) -> Iterator[tuple[int, Queue]]:
    return ((number, queue) for number, queue in enumerate(cluster.queues) if queue.fallback)


def _placed(cluster: Cluster) -> Iterator[tuple[str, Queue, int, ResolvedPool]]:
    """Yield each work pool of each queue that falls back, with its path and its index in the queue."""
    known = {pool.name: pool for pool in cluster.work_pools}
    for number, queue in _fallback_queues(cluster):
        for index, name in enumerate(queue.pools):
            if name in known:
                yield f"queues[{number}].pools[{index}]", queue, index, known[name]


def _alternatives(cluster: Cluster) -> Iterator[tuple[str, ResolvedPool, ResolvedPool]]:
    """Yield each alternative pool of these queues, with its path, after the queue's preferred pool."""
    known = {pool.name: pool for pool in cluster.work_pools}
    for path, queue, index, pool in _placed(cluster):
        if index and (preferred := known.get(queue.pools[0])) is not None:
            yield path, preferred, pool


@cluster_rule("fallback needs several pools", f"{_GKE}; {_EXPANDER}")
def _something_to_fall_back_to(cluster: Cluster) -> Iterator[Fault]:
    for number, queue in _fallback_queues(cluster):
        if len(queue.pools) == 1:
            yield Fault(
                f"queues[{number}].fallback",
                f"The queue has only one pool, {queue.pools[0]}, and no alternative.",
                "The field would have no effect: work would wait for that pool.",
                "Add an alternative pool, or omit fallback.",
            )


@cluster_rule(
    "fallback pools in one queue", f"{_GKE}: a node pool is of one ComputeClass; {KUEUE}, ResourceFlavor"
)
def _in_no_other_queue(cluster: Cluster) -> Iterator[Fault]:
    for number, queue in enumerate(cluster.queues):
        for index, name in enumerate(queue.pools):
            fallback_queue = cluster.fallback_of(name)
            if fallback_queue and fallback_queue != queue.name:
                yield Fault(
                    f"queues[{number}].pools[{index}]",
                    f"The pool {name} is also in the queue {fallback_queue}, which has fallback: true.",
                    "Its quota would be counted in both queues, and Kueue would admit more work than the "
                    "nodes can run.",
                    f"Remove it here, or let the team use the queue {fallback_queue}.",
                )


@cluster_rule(
    "no queued fallback pool",
    "GKE docs, provisioningrequest (2026-04-08); GoogleCloudPlatform/cluster-autoscaler@7d250507, "
    "pkg/cloudprovider/gke/gke_cloud_provider_impl.go: queued waits 365 days, flex-start 15 minutes",
    CloudKind.GKE,
)
def _none_queued(cluster: Cluster) -> Iterator[Fault]:
    for path, _, _, pool in _placed(cluster):
        if isinstance(pool.capacity, Queued):
            yield Fault(
                path,
                f"The pool {pool.name} has queued capacity: its nodes are provisioned for one "
                "ProvisioningRequest each.",
                "The autoscaler would never choose it as a fallback.",
                "Remove it or fallback, and declare a separate queue for it. capacity: flex-start can fall "
                "back: GKE tries the next pool after 15 minutes without stock.",
            )


@cluster_rule("fallback needs eviction policy delete", "Azure/AKS#5589", CloudKind.AKS)
def _backs_off(cluster: Cluster) -> Iterator[Fault]:
    for path, queue, index, pool in _placed(cluster):
        capacity = pool.capacity
        held = isinstance(capacity, Spot) and capacity.eviction_policy == "Deallocate"
        if held and index < len(queue.pools) - 1:
            yield Fault(
                path,
                f"Evicted machines of {pool.name} are deallocated, not deleted.",
                "The autoscaler keeps trying to start them, and never tries the next pool.",
                "Omit evictionPolicy for Delete.",
            )


@cluster_rule(
    "fallback pools have same accelerators", f"{KUEUE}, ClusterQueue v1beta2, nominalQuota (2026-08-20)"
)
def _same_resource(cluster: Cluster) -> Iterator[Fault]:
    for path, first, pool in _alternatives(cluster):
        kinds = [candidate.accelerator_type for candidate in (first, pool)]
        if len({resource_name(kind) if kind else "" for kind in kinds}) > 1:
            preferred, alternative = (kind or "no accelerators" for kind in kinds)
            yield Fault(
                path,
                f"The pool {pool.name} has {alternative}, and {first.name} has {preferred}.",
                "Pods that request one type cannot use the other, and the quota would be the sum of both.",
                "Declare a queue for each.",
            )


@cluster_rule("fallback pool label is derived", _GKE)
def _own_label(cluster: Cluster) -> Iterator[Fault]:
    key = CLOUD_SPECS[cluster.site.cloud].fallback_key
    for pool in pools_of(cluster):
        written, queue = pool.pool.labels.get(key), cluster.fallback_of(pool.pool.name)
        if written is not None and written != queue and (queue or key != COMPUTE_CLASS):
            yield Fault(
                pool.at(f'labels["{key}"]'),
                f"The label {key} is derived from the fallback queue of the pool.",
                "Work of that queue would never be scheduled on this pool.",
                "Remove it.",
            )


@cluster_rule(
    "together excludes fallback",
    "kubernetes/autoscaler, cluster-autoscaler/core/scaleup/orchestrator: allOrNothing (2026)",
    CloudKind.AKS,
)
def _together(cluster: Cluster) -> Iterator[Fault]:
    for number, queue in _fallback_queues(cluster):
        if queue.together:
            yield Fault(
                f"queues[{number}].together",
                "The queue has both together: true and fallback: true.",
                "A request for all nodes of a job is served by a single pool: when that has no stock, no "
                "other is tried.",
                "Remove together, or fallback.",
            )


@cluster_rule(
    "fallback on existing AKS cluster",
    "azure-native 3.29.0, ManagedCluster.autoScalerProfile.expander",
    CloudKind.AKS,
)
def _not_ours(cluster: Cluster) -> Iterator[Fault]:
    existing = cluster.cloud.existing
    if existing is None:
        return
    for number, _ in _fallback_queues(cluster):
        yield Fault(
            f"queues[{number}].fallback",
            f"The cluster {existing.name} already exists, and its autoscaler is configured by the cluster's "
            "owner.",
            "Without the priority expander it may choose any pool, including the most expensive one.",
            "Remove fallback.",
        )


@cluster_rule(
    "consolidation delay needs ComputeClass",
    "GKE docs, reference/crds/computeclass, autoscalingPolicy (2026)",
    CloudKind.GKE,
)
def _delay_of_a_class(cluster: Cluster) -> Iterator[Fault]:
    delay = cluster.cloud.consolidation.delay_minutes
    if delay is not None and not any(_fallback_queues(cluster)):
        yield Fault(
            "cloud.consolidation.delayMinutes",
            "No queue has fallback: true, and the delay is a setting of such a queue's ComputeClass.",
            "The delay would have no effect: GKE has no such setting for other pools.",
            "Remove it, or set fallback on a queue. consolidation.profile applies to all pools.",
        )


@cluster_rule(
    "reserved ComputeClass name",
    "GKE docs, run-pods-default-compute-classes and about-autopilot-mode-standard-clusters (2026)",
    CloudKind.GKE,
)
def _class_name(cluster: Cluster) -> Iterator[Fault]:
    for number, queue in _fallback_queues(cluster):
        if queue.name == "default" or queue.name.startswith(_GKE_PREFIXES):
            yield Fault(
                f"queues[{number}].name",
                f"The queue's ComputeClass would be named {queue.name}. GKE reserves default and names that "
                "begin with gke or autopilot.",
                "GKE refuses the ComputeClass, or applies it to all pods of the cluster.",
                f"Write another name, such as pools-{queue.name}.",
            )


@cluster_rule(
    "smaller fallback nodes",
    f"{_GKE}: the next rule is tried only for pods that fit its nodes",
    severity=Severity.WARNED,
)
def _as_large(cluster: Cluster) -> Iterator[Fault]:
    for path, first, pool in _alternatives(cluster):
        count, others = (member.accelerator.count if member.accelerator else 0 for member in (first, pool))
        if first.offered is None or (alternative := pool.offered) is None:
            continue
        if others < count or not alternative.holds(first.offered):
            has = f" with {others} x {pool.accelerator_type}" if count else ""
            yield Fault(
                path,
                f"A node of {pool.name} offers {amount_text(alternative)}{has}, less than a node of "
                f"{first.name}.",
                f"Work that needs a whole node of {first.name} never falls back, and waits for that pool.",
                "Write a machine that is at least as large, unless all work of the queue requests less.",
            )


@cluster_rule(
    "reserved Kueue names",
    "Microsoft docs, aks/configure-queues-with-automatic-resource-flavors (2026-11)",
    CloudKind.AKS,
)
def _not_managed(cluster: Cluster) -> Iterator[Fault]:
    kueue = cluster.addons.kueue
    if kueue is None or kueue.is_installed:
        return
    names = {"cohort.name": cluster.cohort.name}
    names |= {f"queues[{number}].name": queue.name for number, queue in enumerate(cluster.queues)}
    names |= {f"pools[{number}].resourceFlavor": p.resource_flavor for number, p in enumerate(cluster.pools)}
    names |= {
        f"teams[{number}].queues[{index}].clusterQueue": use.cluster_queue
        for number, team in enumerate(cluster.teams)
        for index, use in enumerate(team.queues)
    }
    for path, name in names.items():
        if name is not None and name.startswith(_AKS_PREFIX):
            yield Fault(
                path,
                f"The name {name} begins with {_AKS_PREFIX}, which AKS' managed Kueue reserves.",
                "AKS manages the objects with such names itself.",
                "Write another name.",
            )
