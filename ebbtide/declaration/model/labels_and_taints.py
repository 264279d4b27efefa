"""Labels of nodes, which select a pool, and taints, which repel other pods."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from ebbtide.declaration.catalog import AMD64, ARCHITECTURE, FALLBACK, POOL_LABEL, CloudKind, architecture
from ebbtide.declaration.model import aks_labels_and_taints, gke_labels_and_taints
from ebbtide.declaration.model.pool import Pool, Taint


@dataclass(frozen=True, slots=True)
class LabelsAndTaints:
    """Labels and taints of a pool's nodes.

    Attributes:
        labels: labels that the node pool declares.
        cloud_labels: labels that the cloud adds.
        taints: taints that the node pool declares.
        cloud_taints: taints that the cloud adds.
        distinguishing: keys of the labels that distinguish the pool's nodes from all others.
        pool_label: key of the cloud's label with the pool's name; empty if pods must not select it.
    """

    labels: Mapping[str, str]
    cloud_labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    cloud_taints: tuple[Taint, ...]
    distinguishing: tuple[str, ...]
    pool_label: str

    @property
    def all_labels(self) -> dict[str, str]:
        """Every label of a node."""
        return {**self.cloud_labels, **self.labels}

    @property
    def all_taints(self) -> tuple[Taint, ...]:
        """Every distinct taint of a node."""
        return tuple(dict.fromkeys((*self.taints, *self.cloud_taints)))


def labels_and_taints(pool: Pool, cloud: CloudKind) -> LabelsAndTaints:
    """Return the labels and taints of a complete pool's nodes."""
    match cloud:
        case CloudKind.GKE:
            module = gke_labels_and_taints
        case CloudKind.AKS:
            module = aks_labels_and_taints
        case _:
            assert_never(cloud)
    shared = pool.labels.get(FALLBACK)
    own = Taint(key=FALLBACK, value=shared) if shared else Taint(key=POOL_LABEL, value=pool.name)
    labels = {POOL_LABEL: pool.name, **module.labels(pool), **pool.labels}
    processors = architecture(cloud, pool.machine.type) if pool.machine else AMD64
    # Every node has the label; only that of Arm nodes selects a pool.
    other = {ARCHITECTURE: processors} if processors != AMD64 else {}
    return LabelsAndTaints(
        labels=labels,
        cloud_labels=module.cloud_labels(pool) | other,
        taints=module.taints(pool, own),
        cloud_taints=module.cloud_taints(pool, processors),
        distinguishing=(POOL_LABEL, *module.distinguishing(pool), *other),
        pool_label=module.pool_label(pool),
    )
