"""The document of `ebbtide status --format json`."""

from datetime import datetime
from typing import Any, Final

from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/status/v1"


class PoolStatus(DocumentPart):
    """A node pool. Each node is in one of the four counts."""

    name: str
    """Name in the declaration."""
    capacity: str
    """Capacity type, such as `spot`."""
    machine: str
    """Machine type; empty if there are several."""
    ready: int
    """Nodes that accept pods."""
    coming: int
    """Nodes younger than 15 minutes that are not ready yet."""
    cordoned: int
    """Unschedulable nodes."""
    not_ready: int
    """Older nodes that are not ready."""
    maximum: int
    """Maximum node count."""
    oldest: datetime | None
    """Creation time of the oldest node; null without nodes."""
    usd_per_hour: float | None
    """Current cost of the nodes, USD per hour; null if no price is known."""
    estimated: bool
    """Whether a price of them is an estimate."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.ready + self.coming + self.cordoned + self.not_ready


class WorkStatus(DocumentPart):
    """Work that users created and that has not ended."""

    kind: str
    """Kind, such as `Job`."""
    namespace: str
    """Namespace."""
    name: str
    """Name."""
    since: datetime
    """Creation time."""
    pods: int
    """Number of pods that have not terminated."""
    pools: tuple[str, ...]
    """Pools of those pods; empty if they are on no node of the stack."""


class WaitingWork(DocumentPart):
    """Work that waits in a queue."""

    kind: str
    """Kind, such as `Job`."""
    namespace: str
    """Namespace."""
    name: str
    """Name."""
    since: datetime
    """Creation time of its Workload."""
    reason: str
    """Cause, as in `ebbtide why`."""
    never: str = ""
    """Reason why no pool of the queue can ever run it; empty if one can."""


class QueueStatus(DocumentPart):
    """A queue of the declaration."""

    name: str
    """Name in the declaration."""
    held: bool
    """True if one of its ClusterQueues admits nothing: `stopPolicy` is not `None`."""
    admitted: int
    """Number of admitted workloads that have not finished."""
    waiting: tuple[WaitingWork, ...]
    """Work that is not admitted, oldest first."""


class UnusedGpus(DocumentPart):
    """GPUs that a pod holds and has not used for an hour."""

    namespace: str
    """Namespace of the pod."""
    pod: str
    """Name of the pod."""
    node: str
    """Its node."""
    gpus: int
    """Number of the unused GPUs."""


class GpuStatus(DocumentPart):
    """Use of the GPUs, from the managed Prometheus of `addons.metrics`."""

    measured: bool
    """False without `addons.metrics`."""
    unknown: str = ""
    """Reason why the metrics could not be read; empty if they were."""
    unused: tuple[UnusedGpus, ...] = ()
    """Pods with unused GPUs."""


class CostStatus(DocumentPart):
    """Cost at the list prices of the dated price table, or the stack's own prices."""

    usd_per_hour: float
    """Cost of the existing nodes and of everything that is always billed, USD per hour."""
    always_usd_per_hour: float
    """Cost without nodes: control plane, addresses, gateways, disks of add-ons."""
    unknown: tuple[str, ...]
    """Items without a known price, which are not included."""
    estimated: tuple[str, ...]
    """Items with an estimated price; the cost is then an estimate."""
    prices_of: tuple[str, ...]
    """Dates of the prices."""
    spent_usd: float | None = None
    """Cost of the nodes in the last 30 days, USD, from the add-on `costs`; null without its record. Nodes
    without a known price are not included."""
    idle_usd: float | None = None
    """Part of it that no recorded attempt used."""
    spent_since: datetime | None = None
    """Beginning of the period, or of the record."""


class Status(DocumentPart):
    """The document of `ebbtide status --format json`."""

    version: str = VERSION
    """Version of the document."""
    stack: str
    """Name of the stack."""
    cluster: str
    """Name of the cluster."""
    time: datetime
    """Time of the status."""
    expires: datetime | None
    """Expiry; null for a permanent cluster."""
    asleep: bool = False
    """True after `ebbtide sleep`, until nodes start: queues are held, and machines stopped."""
    pools: tuple[PoolStatus, ...]
    """Node pools."""
    work: tuple[WorkStatus, ...]
    """Work outside of queues or admitted by them, oldest first."""
    queues: tuple[QueueStatus, ...]
    """Queues."""
    gpus: GpuStatus | None
    """Use of the GPUs; null for a cluster without GPU pools."""
    cost: CostStatus
    """Cost."""


def status_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    schema = Status.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
