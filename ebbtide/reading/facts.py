"""What is read of a node pool, in the same words for both clouds."""

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


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """The boot disk of one node; None for what the cloud decides."""

    size_gib: int | None
    type: str | None


@dataclass(frozen=True, slots=True)
class TaintFacts:
    """A taint as Kubernetes spells it; `automatic` where the cloud adds it by itself."""

    key: str
    value: str
    effect: str
    automatic: bool = False

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """How many nodes a pool has, in all its zones together.

    Attributes:
        minimum: the fewest that the autoscaler leaves; None where the number is fixed.
        maximum: the most that it makes; None where the number is fixed.
        fixed: a number without autoscaling.
        at_birth: how many there are when the pool is made; None where the cloud starts at the minimum.
    """

    minimum: int | None = None
    maximum: int | None = None
    fixed: int | None = None
    at_birth: int | None = None

    @property
    def idle(self) -> int:
        """How many nodes there are when nothing runs."""
        return self.fixed if self.fixed is not None else self.minimum or 0

    @property
    def most(self) -> int:
        """How many there can be at once."""
        return self.fixed if self.fixed is not None else self.maximum or self.idle


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """One node pool, as the resource has it.

    Attributes:
        urn: the resource; of a pool inside the cluster's own resource, the cluster.
        inline: whether it is part of the cluster's own resource.
        cloud: whose it is.
        name: in the cloud.
        cluster: name of its cluster.
        location: zone or region of the cluster; empty where nothing recorded says, as for a pool of an AKS
            cluster that exists already.
        role: `system` for the pool that runs what tolerates nothing: AKS has a mode for it; on GKE it is a
            pool without taints that never is without nodes.
        machine: machine type.
        accelerator: of one node, declared or part of the machine type; None for a CPU pool.
        capacity: how machines are bought.
        reservation: the reservation that they come from, or `any`; empty where there is none.
        max_price: the most to pay for a spot machine, USD per hour; None for up to the list price.
        nodes: how many.
        zones: where nodes may be; empty for wherever the cluster is.
        disk: boot disk of a node.
        local_disks: disks of the machine itself that a node uses, in words; empty for none.
        settings: what else its nodes are set to, in words.
        labels: Kubernetes labels that the resource declares.
        taints: what nodes carry, declared and automatic.
        max_run_seconds: how long a node lives at most; None for no limit.
        billing: labels of the bill, which Azure calls tags.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """One cluster, as the resource has it.

    Attributes:
        urn: the resource.
        cloud: whose it is.
        name: in the cloud.
        location: zone or region.
        settings: what a reviewer should see of it, each in a few words.
        overrides: inputs of the resource that the declaration overrides, by path.
    """

    urn: str
    cloud: CloudKind
    name: str
    location: str
    settings: tuple[str, ...] = ()
    overrides: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
