"""Facts about a node pool, in common terms for both clouds; parts of the preview's document."""

from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass
from typing import Any, Literal, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from ebbtide.catalog import CloudKind
from ebbtide.documents import CONFIG, DocumentPart

CapacityKind: TypeAlias = Literal["on-demand", "spot", "preemptible", "flex-start", "queued", "reservation"]
Role: TypeAlias = Literal["system", "work"]


@dataclass(frozen=True, config=CONFIG)
class AcceleratorFacts:
    """The accelerators of one node."""

    type: str
    """As the cloud names it, such as `nvidia-tesla-t4`."""
    count: int
    """Number per node."""
    requestable: int
    """Number that the pods of a node can request; of shared GPUs, the shares."""
    sharing: str = ""
    """Partitioning and sharing of GPUs, as `1g.5gb` or `time-sharing by 8`; empty for none."""
    topology: str = ""
    """Topology of a TPU slice of several nodes, as `4x4`; empty for others."""


@dataclass(frozen=True, config=CONFIG)
class DiskFacts:
    """The boot disk of a node."""

    size_gib: int | None
    """GiB; null for the cloud's default."""
    type: str | None
    """As the cloud names it; null for the cloud's default."""


@dataclass(frozen=True, config=CONFIG)
class TaintFacts:
    """A taint of nodes, as Kubernetes has it."""

    key: str
    """Its key."""
    value: str
    """Its value; empty where it has none."""
    effect: str
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    automatic: bool = False
    """True if the cloud adds it by itself."""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, config=CONFIG)
class NodeFacts:
    """Node counts, in total over the zones of the pool."""

    minimum: int | None = None
    """The autoscaler's minimum; null for a fixed count."""
    maximum: int | None = None
    """The autoscaler's maximum; null for a fixed count."""
    fixed: int | None = None
    """The count without autoscaling; null with it."""
    at_birth: int | None = None
    """Initial node count; null if the cloud starts at the minimum."""

    @property
    def idle(self) -> int:
        """The node count without workloads."""
        return self.fixed if self.fixed is not None else self.minimum or 0

    @property
    def most(self) -> int:
        """The maximum node count."""
        return self.fixed if self.fixed is not None else self.maximum or self.idle


class PoolFacts(DocumentPart):
    """A node pool, as its resource has it."""

    name: str
    """Name in the cloud."""
    cluster: str
    """Name of its cluster."""
    cloud: CloudKind
    """`gke` or `aks`."""
    location: str = ""
    """Zone or region of the cluster; empty if not recorded, as for a pool of an existing AKS cluster."""
    role: Role
    """`system` for the pool of pods without tolerations: a mode on AKS; on GKE a pool without taints that
    never scales to zero."""
    machine: str
    """Machine type."""
    accelerator: AcceleratorFacts | None
    """Accelerators of a node, declared or part of the machine type; null for a CPU pool."""
    capacity: CapacityKind
    """Capacity type."""
    reservation: str = ""
    """The reservation of its machines, or `any`; empty for none."""
    max_price: float | None = None
    """Maximum price of a spot machine, USD per hour; null for up to the list price."""
    nodes: NodeFacts
    """Node counts."""
    zones: tuple[str, ...] = ()
    """Zones of the nodes; empty for the cluster's."""
    disk: DiskFacts
    """Boot disk of a node."""
    local_disks: str = ""
    """Local disks of the machine that a node uses, in words; empty for none."""
    settings: tuple[str, ...] = ()
    """Other settings of its nodes, in words, as `gVNIC`."""
    labels: dict[str, str]
    """Kubernetes labels that the resource declares."""
    taints: tuple[TaintFacts, ...]
    """Declared and automatic taints."""
    max_run_seconds: int | None = None
    """Maximum lifetime of a node; null for no limit."""
    billing: dict[str, str]
    """Billing labels, which Azure calls tags."""
    network_tags: tuple[str, ...] = ()
    """Network tags of nodes on Google Cloud."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Inputs of the pool's resource that the declaration overrides, by path."""
    urn: str
    """The pool's resource; the cluster's for an inline pool."""
    inline: bool = False
    """True if the pool is part of its cluster's resource."""


@plain_dataclass(frozen=True, slots=True)
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


@plain_dataclass(frozen=True, slots=True)
class QuotaFacts:
    """A ClusterQueue's quota of a resource.

    Attributes:
        nominal: the guarantee.
        cohort: the guarantees of the whole cohort, its own included.
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
