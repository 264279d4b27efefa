"""Facts about a node pool, in common terms for both clouds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ebbtide.catalog import CloudKind
from ebbtide.recording.values import Plain

CapacityKind: TypeAlias = Literal["on-demand", "spot", "preemptible", "flex-start", "queued", "reservation"]
Role: TypeAlias = Literal["system", "work"]


@dataclass(frozen=True, slots=True)
class AcceleratorFacts:
    """The accelerators of one node.

    Attributes:
        type: as the cloud names it.
        count: how many a node has.
        sharing: how GPUs are divided and shared, in words; empty where they are not.
        shares: how many of the resource that pods request one counts as.
        topology: of a TPU slice of several nodes; empty for others.
    """

    type: str
    count: int
    sharing: str = ""
    shares: int = 1
    topology: str = ""

    @property
    def requestable(self) -> int:
        """Number that the pods of a node can request; of shared GPUs, the shares."""
        return self.count * self.shares


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """The boot disk of one node; None for the cloud's default."""

    size_gib: int | None
    type: str | None


@dataclass(frozen=True, slots=True)
class TaintFacts:
    """A taint in Kubernetes' spelling; `automatic` if the cloud adds it."""

    key: str
    value: str
    effect: str
    automatic: bool = False

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The node counts of a pool, over all zones.

    Attributes:
        minimum: the autoscaler's minimum; None for a fixed count.
        maximum: the autoscaler's maximum; None for a fixed count.
        fixed: the count without autoscaling.
        at_birth: the initial count; None if the cloud starts at the minimum.
    """

    minimum: int | None = None
    maximum: int | None = None
    fixed: int | None = None
    at_birth: int | None = None

    @property
    def idle(self) -> int:
        """The node count without workloads."""
        return self.fixed if self.fixed is not None else self.minimum or 0

    @property
    def most(self) -> int:
        """The maximum node count."""
        return self.fixed if self.fixed is not None else self.maximum or self.idle


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """A node pool as declared by its resource.

    Attributes:
        urn: the resource; for an inline pool, the cluster.
        inline: true if it is part of the cluster's resource.
        cloud: the cloud.
        name: the name in the cloud.
        cluster: the cluster's name.
        location: zone or region of the cluster; empty if not recorded, as for a pool of an existing AKS
            cluster.
        role: `system` for the pool of pods without tolerations: a mode on AKS; on GKE a pool without taints
            that never scales to zero.
        machine: machine type.
        accelerator: per node, declared or part of the machine type; None for a CPU pool.
        capacity: the provisioning model.
        reservation: the reservation of its machines, or `any`; empty for none.
        max_price: maximum price of a spot machine, USD per hour; None for up to the list price.
        nodes: node counts.
        zones: zones of its nodes; empty for the cluster's zones.
        disk: boot disk of a node.
        local_disks: local disks of the machine that a node uses, in words; empty for none.
        settings: further settings of its nodes, in words.
        labels: declared Kubernetes labels.
        taints: declared and automatic taints.
        max_run_seconds: maximum lifetime of a node; None for no limit.
        billing: billing labels, which Azure calls tags.
        network_tags: network tags of nodes on Google Cloud.
        overrides: inputs of the resource that the declaration overrides, by path.
    """

    urn: str
    inline: bool = False
    cloud: CloudKind
    name: str
    cluster: str
    location: str = ""
    role: Role
    machine: str
    accelerator: AcceleratorFacts | None
    capacity: CapacityKind
    reservation: str = ""
    max_price: float | None = None
    nodes: NodeFacts
    zones: tuple[str, ...] = ()
    disk: DiskFacts
    local_disks: str = ""
    settings: tuple[str, ...] = ()
    labels: Mapping[str, str]
    taints: tuple[TaintFacts, ...]
    max_run_seconds: int | None = None
    billing: Mapping[str, str]
    network_tags: tuple[str, ...] = ()
    overrides: Mapping[str, Plain] = field(default_factory=dict[str, Plain])


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
        cohort: the guarantees of the whole cohort, its own included.
        borrowing_limit: the most to borrow; None for no limit.
    """

    nominal: float
    cohort: float
    borrowing_limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A cluster as declared by its resource.

    Attributes:
        urn: the resource.
        cloud: the cloud.
        name: the name in the cloud.
        location: zone or region.
        settings: remarks for a reviewer, of a few words each.
        overrides: inputs of the resource that the declaration overrides, by path.
    """

    urn: str
    cloud: CloudKind
    name: str
    location: str
    settings: tuple[str, ...] = ()
    overrides: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
