"""Decisions on ProvisioningRequests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ebbtide_rehearsal.cloud.pools import NodePool

QUEUED: Final = "queued-provisioning.gke.io"
"""GKE's provisioning class for queued capacity."""

ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""The cluster autoscaler's provisioning class for all nodes or none."""

CHECK: Final = "check-capacity.autoscaling.x-k8s.io"
"""The cluster autoscaler's provisioning class for existing free capacity."""


@dataclass(frozen=True, slots=True)
class RequestCondition:
    """A new condition of a request.

    Attributes:
        kind: type, such as `Provisioned`.
        status: status of the condition.
        reason: reason in one word.
        message: message as a sentence.
        details: `provisioningClassDetails`.
    """

    kind: str
    status: bool
    reason: str
    message: str
    details: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def sentence(self) -> str:
        """End of a sentence that begins with the request."""
        return f"is {'' if self.status else 'not '}{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Order:
    """An order for all nodes of a request at once.

    Attributes:
        pool: the pool.
        zones: the zone of each node.
    """

    pool: NodePool
    zones: tuple[str, ...]


Decision = RequestCondition | Order | None
"""None keeps the request waiting."""
