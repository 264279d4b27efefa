"""Manifests of fallback orders between pools, for the clouds' autoscalers."""

import re
from collections.abc import Mapping
from typing import Any, assert_never

import yaml

from ebbtide.declaration.model import Aks, Cluster, Gke, GkeConsolidation, Queue

Manifest = dict[str, Any]

EXPANDER_MAP = "cluster-autoscaler-priority-expander"
"""Name of the ConfigMap in kube-system that the priority expander reads (kubernetes/autoscaler,
cluster-autoscaler/expander/priority, 2026)."""

_STEP = 10
_ANY_OTHER = 1


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


def expander_map(cluster: Cluster) -> Manifest:
    """Return the ConfigMap by which AKS's autoscaler prefers pools (azure-aks-docs,
    cluster-autoscaler-overview, 2026-08)."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": EXPANDER_MAP, "namespace": "kube-system"},
        "data": {"priorities": yaml.safe_dump(priorities(cluster))},
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
