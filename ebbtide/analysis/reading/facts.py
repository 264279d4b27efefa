"""Facts about clusters and their queues, in common terms for both clouds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from ebbtide.declaration.catalog import CloudKind
from ebbtide.values.documents import DocumentPart


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A ClusterQueue.

    Attributes:
        name: its name.
        local_queues: its LocalQueues, as `namespace/name`.
        cohort: its cohort; empty for none.
        weight: its weight in fair sharing.
        quotas: its quota by flavor and resource, in order of preference; CPU and accelerators alone.
    """

    name: str
    local_queues: tuple[str, ...]
    cohort: str
    weight: str
    quotas: Mapping[str, Mapping[str, "QuotaFacts"]]


@dataclass(frozen=True, slots=True)
class QuotaFacts:
    """A ClusterQueue's quota of a resource.

    Attributes:
        nominal: the guarantee.
        cohort: its own guarantee, and what the rest of the cohort lends.
        borrowing_limit: the most to borrow; None for no limit.
    """

    nominal: float
    cohort: float
    borrowing_limit: float | None = None


class ClusterFacts(DocumentPart):
    """A cluster, as its resource has it."""

    name: str
    """Name in the cloud."""
    cloud: CloudKind
    """`gke` or `aks`."""
    location: str
    """Zone or region."""
    settings: tuple[str, ...] = ()
    """Remarks for a reviewer, of a few words each."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Inputs of the cluster's resource that the declaration overrides, by path."""
    urn: str
    """The cluster's resource."""
