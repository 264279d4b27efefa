"""Placement of controllers on the system pool, so that every work pool can reach zero."""

from dataclasses import dataclass
from typing import Any

from ebbtide.catalog import POOL_LABEL, CloudKind
from ebbtide.model import Cluster
from ebbtide.placement.aks_marks import MODE, SYSTEM_ONLY
from ebbtide.placement.derive import toleration
from ebbtide.placement.marks import marks


@dataclass(frozen=True, slots=True)
class Home:
    """Fields of a pod spec that place a pod on the system pool.

    Attributes:
        node_selector: labels of its nodes; empty if unknown.
        tolerations: of each taint of its nodes.
    """

    node_selector: dict[str, str]
    tolerations: list[dict[str, Any]]


def home(declaration: Cluster) -> Home:
    """The system pool of a complete declaration.

    A cluster that is there already and whose system pool is not declared: on AKS its nodes have a mark of
    their own, on GKE whatever is untainted will do, since every work pool of ours is tainted.
    """
    pool = declaration.system_pool
    if pool is not None:
        found = marks(pool, declaration.site.cloud)
        return Home(
            {POOL_LABEL: found.all_labels[POOL_LABEL]},
            [dict(toleration(taint).manifest()) for taint in found.all_taints],
        )
    if declaration.site.cloud is CloudKind.AKS:
        return Home({MODE: "system"}, [dict(toleration(SYSTEM_ONLY).manifest())])
    return Home({}, [])
