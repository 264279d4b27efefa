"""Manifests of fallback orders between pools, for the clouds' autoscalers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, assert_never

import yaml

from ebbtide.model import Aks, Cluster, Gke, GkeConsolidation, Queue

Manifest = dict[str, Any]

EXPANDER_MAP = "cluster-autoscaler-priority-expander"
"""Name of the ConfigMap in kube-system that the priority expander reads (kubernetes/autoscaler,
cluster-autoscaler/expander/priority, 2026)."""

_STEP = 10
_ANY_OTHER = 1
_AS_DECLARED: Mapping[str, str] = MappingProxyType({})


def compute_class(queue: Queue, consolidation: GkeConsolidation) -> Manifest:
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


def _scale_sets(pool: str) -> str:
    """Return a regular expression for the autoscaler's name of a pool, its scale set:
    `aks-<pool>-29141059-vmss` (Azure/AKS#2359); a pool's name has no hyphen."""
    return f"^aks-{pool}-"


def priorities(cluster: Cluster, cloud_names: Mapping[str, str] = _AS_DECLARED) -> dict[int, list[str]]:
    """Return patterns of scale sets by priority: a pool before its fallbacks. Pools of different queues are
    never compared, since no pod fits both. All other pools come last, only to avoid the autoscaler's
    warnings; no two patterns match the same name.

    Args:
        cluster: the declaration.
        cloud_names: the pools' names in the cloud, by declared name. Default: the declared names.
    """
    ranks = {
        pool: number * _STEP
        for queue in cluster.fallback_queues
        for number, pool in enumerate(reversed(queue.pools), start=1)
    }
    patterns: dict[int, list[str]] = {}
    for pool in cluster.pools:
        scale_sets = _scale_sets(cloud_names.get(pool.name, pool.name))
        patterns.setdefault(ranks.get(pool.name, _ANY_OTHER), []).append(scale_sets)
    return patterns


def expander_map(cluster: Cluster, cloud_names: Mapping[str, str] = _AS_DECLARED) -> Manifest:
    """Return the ConfigMap by which AKS's autoscaler prefers pools (azure-aks-docs,
    cluster-autoscaler-overview, 2026-08).

    Args:
        cluster: the declaration.
        cloud_names: the pools' names in the cloud, by declared name. Default: the declared names.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": EXPANDER_MAP, "namespace": "kube-system"},
        "data": {"priorities": yaml.safe_dump(priorities(cluster, cloud_names))},
    }


def fallback_objects(cluster: Cluster) -> tuple[Manifest, ...]:
    """Return the objects of all fallback orders: on GKE a ComputeClass for each queue with fallback, on AKS
    one ConfigMap."""
    queues = cluster.fallback_queues
    match cluster.cloud:
        case Gke(consolidation=consolidation):
            return tuple(compute_class(queue, consolidation) for queue in queues)
        case Aks():
            return (expander_map(cluster),) if queues else ()
        case _:
            assert_never(cluster.cloud)
