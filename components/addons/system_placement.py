"""Placement of controllers on the system pool, so that every work pool can scale to zero."""

from dataclasses import dataclass
from typing import Any

from ebbtide.catalog import POOL_LABEL, CloudKind
from ebbtide.model import Cluster
from ebbtide.placement.aks_labels_and_taints import MODE, SYSTEM_ONLY
from ebbtide.placement.derive import toleration
from ebbtide.placement.labels_and_taints import labels_and_taints


@dataclass(frozen=True, slots=True)
class SystemPlacement:
    """Fields of a pod spec that place a pod on the system pool.

    Attributes:
        node_selector: labels of the pool's nodes; empty if unknown.
        tolerations: one for each taint of the pool's nodes.
    """

    node_selector: dict[str, str]
    tolerations: list[dict[str, Any]]


def system_placement(declaration: Cluster) -> SystemPlacement:
    """Return the placement on the system pool of a complete declaration.

    For an existing cluster whose system pool is not declared: on AKS, the nodes with AKS's label of system
    pools; on GKE, any untainted node, since Ebbtide taints every work pool.
    """
    pool = declaration.system_pool
    if pool is not None:
        derived = labels_and_taints(pool, declaration.site.cloud)
        return SystemPlacement(
            {POOL_LABEL: derived.all_labels[POOL_LABEL]},
            [dict(toleration(taint).manifest()) for taint in derived.all_taints],
        )
    if declaration.site.cloud is CloudKind.AKS:
        return SystemPlacement({MODE: "system"}, [dict(toleration(SYSTEM_ONLY).manifest())])
    return SystemPlacement({}, [])
