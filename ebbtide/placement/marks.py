"""Labels of nodes, which select a pool, and taints, which repel other pods."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from ebbtide.catalog import FALLBACK, POOL_LABEL, CloudKind
from ebbtide.model import Pool, Taint
from ebbtide.placement import aks_marks, gke_marks


@dataclass(frozen=True, slots=True)
class Marks:
    """Labels and taints of a pool's nodes.

    Attributes:
        labels: what we declare on the node pool.
        cloud_labels: what the cloud adds by itself.
        taints: what we declare on the node pool.
        cloud_taints: what the cloud adds by itself.
        telling: keys of the labels that tell the pool's nodes from all others.
        pool_label: key of the cloud's own label that names the pool; empty where pods must not select it.
    """

    labels: Mapping[str, str]
    cloud_labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    cloud_taints: tuple[Taint, ...]
    telling: tuple[str, ...]
    pool_label: str

    @property
    def all_labels(self) -> dict[str, str]:
        """Every label that a node carries."""
        return {**self.cloud_labels, **self.labels}

    @property
    def all_taints(self) -> tuple[Taint, ...]:
        """Every taint that a node carries, each once."""
        return tuple(dict.fromkeys((*self.taints, *self.cloud_taints)))


def marks(pool: Pool, cloud: CloudKind) -> Marks:
    """The marks of a complete pool's nodes."""
    match cloud:
        case CloudKind.GKE:
            room = gke_marks
        case CloudKind.AKS:
            room = aks_marks
        case _:
            assert_never(cloud)
    shared = pool.labels.get(FALLBACK)
    own = Taint(key=FALLBACK, value=shared) if shared else Taint(key=POOL_LABEL, value=pool.name)
    labels = {POOL_LABEL: pool.name, **room.labels(pool), **pool.labels}
    cloud_labels = room.cloud_labels(pool)
    return Marks(
        labels=labels,
        cloud_labels=cloud_labels,
        taints=room.taints(pool, own),
        cloud_taints=room.cloud_taints(pool),
        telling=(POOL_LABEL, *room.telling(pool)),
        pool_label=room.pool_label(pool),
    )
