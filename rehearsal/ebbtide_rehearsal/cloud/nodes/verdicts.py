"""What may become of a ProvisioningRequest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ebbtide_rehearsal.cloud.pools import NodePool

QUEUED: Final = "queued-provisioning.gke.io"
"""GKE's class for capacity that is waited for."""

ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""The cluster autoscaler's class for nodes that come all or not at all."""

CHECK: Final = "check-capacity.autoscaling.x-k8s.io"
"""The cluster autoscaler's class for capacity that is there already."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a request gets.

    Attributes:
        kind: such as `Provisioned`.
        status: whether it is true.
        reason: a word.
        message: a sentence.
        details: what the class has to say beside.
    """

    kind: str
    status: bool
    reason: str
    message: str
    details: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def sentence(self) -> str:
        """For people, as the end of a sentence that begins with the request."""
        return f"is {'' if self.status else 'not '}{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Order:
    """Nodes that a request is to get, all at once.

    Attributes:
        pool: of which pool.
        zones: where each goes.
    """

    pool: NodePool
    zones: tuple[str, ...]


Verdict = Condition | Order | None
"""None lets the request wait."""
