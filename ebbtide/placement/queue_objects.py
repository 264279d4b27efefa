"""Manifests of the queues: Kueue's objects, those by which autoscalers fall back to other pools, and the
settings of Kueue's controller that they depend on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import yaml

from ebbtide.declaration.model.capacity import FlexStart
from ebbtide.declaration.model.cloud import Aks, Gke, GkeConsolidation
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.tenancy import Queue
from ebbtide.placement.profile import PRIORITIES
from ebbtide.placement.queueing import (
    Check,
    ClusterQueue,
    Cohort,
    Flavor,
    LocalQueueObject,
    Queueing,
    covered,
    quantity,
)
from ebbtide.values.kueue_api import API_VERSION
from ebbtide.values.paths import Object

CONTROLLER: Final = "kueue.x-k8s.io/provisioning-request"
QUEUES_LABEL: Final = "ebbtide.dev/queues"
"""Label of the namespaces whose workloads Kueue manages; its webhooks, which fail closed, select no other
namespace."""

RETRIES: Final = {"backoffLimitCount": 10, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}
"""Retries of a provisioning request, with exponential backoff up to half an hour: three hours in total. After
the last one, Kueue deactivates the workload; with upstream's default of three retries, after seven minutes,
too soon for scarce hardware."""

EXPANDER_MAP: Final = "cluster-autoscaler-priority-expander"
"""Name of the ConfigMap in kube-system that the priority expander reads (kubernetes/autoscaler,
cluster-autoscaler/expander/priority, 2026)."""

_STEP: Final = 10
_ANY_OTHER: Final = 1

FAIR_SHARING: Final[Mapping[str, Any]] = {
    "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
}
_UNCOUNTED: Final = ("ephemeral-storage",)
_INTERFACES: Final = "networking.gke.io.networks"
"""Resources that GKE adds to pods with several interfaces (GKE docs, multinetwork-gke, 2026)."""

DEFAULT_WAIT: Final = timedelta(minutes=30)
"""Kueue's own time limit from admission until pods are ready."""
_FROM_ZERO: Final = timedelta(hours=1)
_FOR_STOCK: Final = timedelta(days=7)


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": dict(spec),
    }


def flavor_object(item: Flavor) -> Object:
    """Return the ResourceFlavor of a pool, or of alternative pools. Its labels and tolerations are added to
    admitted pods, so its taints exclude no workload and are only documentation."""
    return _object(
        "ResourceFlavor",
        item.name,
        {
            "nodeLabels": dict(item.labels),
            "nodeTaints": [
                {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})
                for taint in item.taints
            ],
            "tolerations": [toleration.manifest() for toleration in item.tolerations],
        },
    )


def _group(
    flavors: Sequence[tuple[Flavor, Mapping[str, int]]], limits: Mapping[str, Mapping[str, int]] | None = None
) -> list[Object]:
    """Return one resource group over flavors, each with the quota of its pools' nodes.

    Args:
        flavors: the flavors, with the nodes of each pool.
        limits: numbers of nodes by pool, by the name of the limit. A flavor of several pools has a limit if
            one of its pools has.
    """
    if not flavors:
        return []
    resources = covered(item for item, _ in flavors)

    def quotas(item: Flavor, nodes: Mapping[str, int]) -> dict[str, Mapping[str, int]]:
        most = {"borrowingLimit": {offer.pool: offer.nodes for offer in item.offers}, "lendingLimit": nodes}
        limited = {
            name: item.offer({**most[name], **limit})
            for name, limit in (limits or {}).items()
            if any(offer.pool in limit for offer in item.offers)
        }
        return {"nominalQuota": item.offer(nodes), **limited}

    return [
        {
            "coveredResources": list(resources),
            "flavors": [
                {
                    "name": item.name,
                    "resources": [
                        {"name": name}
                        | {key: quantity(name, amounts.get(name, 0)) for key, amounts in quota.items()}
                        for name in resources
                    ],
                }
                for item, nodes in flavors
                for quota in [quotas(item, nodes)]
            ],
        }
    ]


def cohort_object(cohort: Cohort) -> Object:
    """Return the Cohort that owns quota."""
    spec: Object = {"parentName": cohort.parent} if cohort.parent else {}
    return _object("Cohort", cohort.name, spec | {"resourceGroups": _group(cohort.owned)})


def _named(namespaces: Sequence[str]) -> Object:
    """Return a selector of namespaces by name."""
    key = "kubernetes.io/metadata.name"
    if len(namespaces) == 1:
        return {"matchLabels": {key: namespaces[0]}}
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(namespaces)}]}


def cluster_queue_object(queue: ClusterQueue) -> Object:
    """Return the ClusterQueue of a team, or of namespaces without one.

    Kueue uses the first flavor with free quota, including borrowed quota: flavors are in order of preference.
    """
    spec: Object = {
        "cohortName": queue.cohort,
        "queueingStrategy": queue.order.strategy,
        "namespaceSelector": _named(queue.namespaces),
        "resourceGroups": _group(
            queue.flavors, {"borrowingLimit": queue.borrowing_limit, "lendingLimit": queue.lending_limit}
        ),
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": queue.order.reclaim_within_cohort,
            "withinClusterQueue": queue.order.within_cluster_queue,
        },
        "fairSharing": {"weight": str(queue.weight)},
    }
    if queue.checks:
        spec["admissionChecksStrategy"] = {
            "admissionChecks": [
                {"name": name, "onFlavors": list(flavors)} for name, flavors in queue.checks.items()
            ]
        }
    return _object("ClusterQueue", queue.name, spec)


def local_queue_object(queue: LocalQueueObject) -> Object:
    """Return a LocalQueue, to which workloads of a namespace refer."""
    return _object("LocalQueue", queue.name, {"clusterQueue": queue.cluster_queue}, namespace=queue.namespace)


def provisioning_object(check: Check) -> Object:
    """Return the ProvisioningRequestConfig of a check. Pod sets with the same node requirements are merged,
    since GKE accepts only one per request (GKE docs, provisioningrequest, 2026-04)."""
    spec: Object = {
        "provisioningClassName": check.provisioning_class,
        "podSetMergePolicy": "IdenticalWorkloadSchedulingRequirements",
        "retryStrategy": dict(RETRIES),
    }
    if check.resource:
        spec["managedResources"] = [check.resource]
    if check.follow:
        spec["podSetUpdates"] = {
            "nodeSelector": [
                {"key": key, "valueFromProvisioningClassDetail": detail} for key, detail in check.follow
            ]
        }
    return _object("ProvisioningRequestConfig", check.name, spec)


def check_object(check: Check) -> Object:
    """Return the AdmissionCheck."""
    parameters = {
        "apiGroup": API_VERSION.partition("/")[0],
        "kind": "ProvisioningRequestConfig",
        "name": check.name,
    }
    return _object("AdmissionCheck", check.name, {"controllerName": CONTROLLER, "parameters": parameters})


def priority_objects() -> Iterator[Object]:
    """Return the WorkloadPriorityClasses, the same on every cluster."""
    for name, (value, description) in PRIORITIES.items():
        yield {
            "apiVersion": API_VERSION,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
        }


def layers(queueing: Queueing) -> tuple[tuple[Object, ...], ...]:
    """Return all objects, in layers: each depends only on previous layers, and is deleted before them."""
    return (
        (
            *(provisioning_object(check) for check in queueing.checks),
            *(flavor_object(item) for item in queueing.flavors),
            *priority_objects(),
        ),
        (
            *(check_object(check) for check in queueing.checks),
            *(cohort_object(cohort) for cohort in queueing.cohorts),
        ),
        tuple(cluster_queue_object(queue) for queue in queueing.cluster_queues),
        tuple(local_queue_object(queue) for queue in queueing.local_queues),
    )


def compute_class(queue: Queue, consolidation: GkeConsolidation) -> Object:
    """Return the ComputeClass of a queue with fallback: a rule for each pool, since the pools of one rule
    have no order. It creates no other pools and moves no workloads; while no pool has capacity, workloads
    wait (GKE docs, about-custom-compute-classes and reference/crds/computeclass, 2026)."""
    delay = consolidation.delay_minutes
    policy = {"autoscalingPolicy": {"consolidationDelayMinutes": delay}} if delay is not None else {}
    return {
        "apiVersion": "cloud.google.com/v1",
        "kind": "ComputeClass",
        "metadata": {"name": queue.name},
        "spec": {
            "priorities": [{"nodepools": [pool]} for pool in queue.pools],
            "whenUnsatisfiable": "DoNotScaleUp",
            "nodePoolAutoCreation": {"enabled": False},
            "activeMigration": {"optimizeRulePriority": False},
            **policy,
        },
    }


def priorities(cluster: Cluster) -> dict[int, list[str]]:
    """Return patterns of scale sets by priority: a pool before its fallbacks. Pools of different queues are
    never compared, since no pod fits both. All other pools come last, only to avoid the autoscaler's
    warnings; no two patterns match the same name.

    A scale set is the autoscaler's name of a pool, `aks-<pool>-29141059-vmss` (Azure/AKS#2359); a pool's name
    has no hyphen.
    """
    ranks = {
        pool: number * _STEP
        for queue in cluster.fallback_queues
        for number, pool in enumerate(reversed(queue.pools), start=1)
    }
    patterns: dict[int, list[str]] = {}
    for pool in cluster.pools:
        patterns.setdefault(ranks.get(pool.name, _ANY_OTHER), []).append(f"^aks-{pool.name}-")
    return patterns


def with_names(priorities: str, cloud_names: Mapping[str, str]) -> str:
    """Return the text of the priorities with the pools' names in the cloud, given by declared name."""
    return re.sub(r"(?<=\^aks-)[^-]+(?=-)", lambda pool: cloud_names.get(pool[0], pool[0]), priorities)


def expander_map(cluster: Cluster) -> Object:
    """Return the ConfigMap by which AKS's autoscaler prefers pools (azure-aks-docs,
    cluster-autoscaler-overview, 2026-08)."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": EXPANDER_MAP, "namespace": "kube-system"},
        "data": {"priorities": yaml.safe_dump(priorities(cluster))},
    }


def fallback_objects(cluster: Cluster) -> tuple[Object, ...]:
    """Return the objects of all fallback orders: on GKE a ComputeClass for each queue with fallback, on AKS
    one ConfigMap."""
    queues = cluster.fallback_queues
    match cluster.cloud:
        case Gke(consolidation=consolidation):
            return tuple(compute_class(queue, consolidation) for queue in queues)
        case Aks():
            return (expander_map(cluster),) if queues else ()


def frameworks(declaration: Cluster) -> list[str]:
    """Return the frameworks that Kueue manages: Jobs, pods (pipeline steps and Katib's trials), those of the
    add-ons, and the declared ones."""
    enabled = ["batch/job", "pod"]
    for add_on in declaration.add_ons:
        enabled += add_on.spec.frameworks
    if declaration.addons.kueue is not None:
        enabled += declaration.addons.kueue.frameworks
    return list(dict.fromkeys(enabled))


def uncounted(declaration: Cluster) -> tuple[str, ...]:
    """Return the prefixes of resources that no flavor has: work that requests one would never be admitted."""
    return (*_UNCOUNTED, *([_INTERFACES] if declaration.gpu_networks else []))


def wait_for_pods(declaration: Cluster) -> timedelta:
    """Return the time limit from a workload's admission until its pods are ready; then Kueue requeues it.

    Kueue's default of 30 minutes if nodes exist; an hour if pools start from zero, with a driver to install
    and images to pull; a week if a flex-start pool waits for capacity after admission. Queued provisioning
    waits before admission, in its admission check.
    """
    used = {name for queue in declaration.resolved_queues for name in queue.pools}
    pools = [pool for pool in declaration.pools if pool.name in used]
    if any(isinstance(pool.capacity, FlexStart) for pool in pools):
        return _FOR_STOCK
    starts = any(pool.nodes.count is None and not pool.nodes.min for pool in pools)
    return _FROM_ZERO if starts else DEFAULT_WAIT
