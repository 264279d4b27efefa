"""Placement of controllers on the system pool, so that every work pool can scale to zero, and their
priority over other pods there."""

from dataclasses import dataclass
from typing import Any

from ebbtide.declaration.catalog import POOL_LABEL, CloudKind
from ebbtide.declaration.model import Cluster
from ebbtide.declaration.model.labels_and_taints import MODE, SYSTEM_ONLY
from ebbtide.placement.derive import toleration
from ebbtide.placement.member_policy import HIGHEST_PRIORITY, controllers_priority

from .manifest import obj


@dataclass(frozen=True, slots=True)
class SystemPlacement:
    """Fields of a pod spec that place a pod on the system pool.

    Attributes:
        node_selector: labels of the pool's nodes; empty if unknown.
        tolerations: one for each taint of the pool's nodes.
        priority_class: name of the controllers' priority class.
    """

    node_selector: dict[str, str]
    tolerations: list[dict[str, Any]]
    priority_class: str


def system_placement(declaration: Cluster) -> SystemPlacement:
    """Return the placement on the system pool of a complete declaration.

    For an existing cluster whose system pool is not declared: on AKS, the nodes with AKS's label of system
    pools; on GKE, any untainted node, since Ebbtide taints every work pool.
    """
    pool, priority = declaration.system_pool, controllers_priority(declaration)
    if pool is not None:
        derived = pool.labels_and_taints
        return SystemPlacement(
            {POOL_LABEL: derived.all_labels[POOL_LABEL]},
            [dict(toleration(taint).manifest()) for taint in derived.all_taints],
            priority,
        )
    if declaration.site.cloud is CloudKind.AKS:
        return SystemPlacement({MODE: "system"}, [dict(toleration(SYSTEM_ONLY).manifest())], priority)
    return SystemPlacement({}, [], priority)


def priority_class(declaration: Cluster) -> dict[str, Any]:
    """Return the priority class of controllers.

    A system pool without taints, which GKE's is, also takes steps of Kubeflow Pipelines, and on an existing
    cluster pods that members create without a queue. These are preempted if a controller finds no node:
    webhooks of Kueue, Trainer and Katib fail closed, so that without them no pod of any team would start. Not
    `system-cluster-critical`, which GKE admits outside of kube-system only with a quota (GKE docs,
    gpu-operator, 2026).
    """
    return obj(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        controllers_priority(declaration),
        value=HIGHEST_PRIORITY,
        description="Controllers of the cluster's add-ons",
    )
