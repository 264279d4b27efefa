"""The document of `ebbtide status --format json`."""

from datetime import datetime
from typing import Any, Final

from ebbtide.documents import DocumentPart

VERSION: Final = "ebbtide.dev/status/v1"


class PoolStatus(DocumentPart):
    """A node pool. Each of its nodes is in one of the four counts."""

    name: str
    """Its name in the declaration."""
    capacity: str
    """Its capacity kind, as `spot`."""
    machine: str
    """Its machine type; empty for several."""
    ready: int
    """Nodes that take pods."""
    coming: int
    """Nodes younger than 15 minutes that are not ready yet."""
    cordoned: int
    """Nodes that take no new pods: unschedulable."""
    not_ready: int
    """Older nodes that are not ready."""
    maximum: int
    """The maximum node count."""
    oldest: datetime | None
    """Creation time of its oldest node; null without nodes."""
    usd_per_hour: float | None
    """Cost of its nodes now, USD per hour; null if no price is known."""

    @property
    def nodes(self) -> int:
        """The number of its nodes."""
        return self.ready + self.coming + self.cordoned + self.not_ready


class WorkStatus(DocumentPart):
    """Work that users created and that has not ended."""

    kind: str
    """Such as `Job`."""
    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    since: datetime
    """Its creation time."""
    pods: int
    """Its pods that have not terminated."""
    pools: tuple[str, ...]
    """The pools of those pods; empty if none has a node of the stack."""


class WaitingWork(DocumentPart):
    """Work that waits in a queue."""

    kind: str
    """Such as `Job`."""
    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    since: datetime
    """Creation time of its Workload."""
    reason: str
    """The reason in the words of Kueue, the admission checks and the ProvisioningRequest; empty for none."""


class QueueStatus(DocumentPart):
    """A queue of the declaration."""

    name: str
    """Its name in the declaration."""
    held: bool
    """True if one of its ClusterQueues admits nothing: `stopPolicy` is not `None`."""
    admitted: int
    """Work that is admitted and has not finished."""
    waiting: tuple[WaitingWork, ...]
    """Work that is not admitted, oldest first."""


class CostStatus(DocumentPart):
    """Cost at the list prices of the dated price table, or the stack's own prices."""

    usd_per_hour: float
    """Cost of the existing nodes and of all that is always paid, USD per hour."""
    always_usd_per_hour: float
    """Cost without nodes: control plane, addresses, gateways, disks of add-ons."""
    usd_since_midnight: float
    """The cost since midnight, at least: from the creation times of the nodes that exist. Nodes that are
    gone are not included."""
    midnight: datetime
    """The last 00:00 UTC."""
    unknown: tuple[str, ...]
    """Items without a known price, which are not included."""
    prices_of: tuple[str, ...]
    """Dates of the prices."""


class Status(DocumentPart):
    """The document of `ebbtide status --format json`."""

    version: str = VERSION
    """Version of the document."""
    stack: str
    """The stack's name."""
    cluster: str
    """The cluster's name."""
    time: datetime
    """The time of the status."""
    expires: datetime | None
    """Time of expiry; null for a permanent cluster."""
    pools: tuple[PoolStatus, ...]
    """The node pools."""
    work: tuple[WorkStatus, ...]
    """Work outside of queues or admitted by them, oldest first."""
    queues: tuple[QueueStatus, ...]
    """The queues."""
    cost: CostStatus
    """The cost."""


def status_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    schema = Status.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
