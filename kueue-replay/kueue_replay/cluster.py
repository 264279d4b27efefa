"""The cluster of a replay: node pools with their prices and Kueue's objects, as JSON, and what follows from
them: the pools of each queue and flavor."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ebbtide.autoscaler.nodes import NodePool
from ebbtide.declaration.catalog.amounts import Amount, Coverage, Use
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.placement import NodeTaint
from ebbtide.values.kueue_api import flavors_of_queues, of_kind, selects
from ebbtide_rehearsal.report.document import Rate, Rates

_CONFIGURATION: Final = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
"""Kueue's own defaults."""


class Part(BaseModel):
    """A part of a request: camelCase as in Kubernetes' objects, without unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: to_camel(name.removesuffix("_")),
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )


class Accelerator(Part):
    """Accelerators of each node of a pool."""

    type: str
    """Their type, such as `nvidia-tesla-t4`."""
    count: int = Field(ge=1)
    """Number of physical ones."""
    resource: str = "nvidia.com/gpu"
    """Their resource."""
    shares: int = 1
    """Amount of the resource for each."""


class Pool(Part):
    """A node pool."""

    name: str
    cloud: Literal["gke", "aks"] = "gke"
    """The cloud whose autoscaler chooses among pools: GKE's by price, AKS's at random."""
    machine: str = ""
    """Machine type."""
    capacity: CapacityKind = "on-demand"
    """Purchase option; nodes of `queued` are created by ProvisioningRequests, `spot` ones are reclaimed."""
    region: str = ""
    zones: tuple[str, ...] = Field(default=("0",), min_length=1)
    """Zones that nodes are spread over."""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    """Node labels, which ResourceFlavors select."""
    taints: tuple[NodeTaint, ...] = ()
    cpu: int = Field(ge=1)
    """CPU of a node for pods, millicores."""
    memory: int = Field(ge=1)
    """Memory of a node for pods, MiB."""
    accelerator: Accelerator | None = None
    minimum: int = Field(default=0, ge=0)
    maximum: int = Field(ge=0)
    initial: int = Field(default=0, ge=0)
    """Nodes at the start, which boot."""
    existing: int = Field(default=0, ge=0)
    """Nodes that are ready at the start, in place of `initial`, if the request has running jobs or any."""
    autoscaled: bool = True
    """True for a pool that the autoscaler sizes; others stay at `initial`."""
    hourly: float | None = Field(default=None, ge=0)
    """Price of a node, US dollars per hour; null if it is unknown: then its cost is unknown, too, and an
    autoscaler that prefers the cheapest pool takes it last."""
    max_run_seconds: int | None = None
    """Lifetime after which the cloud removes a node."""
    begins: datetime | None = None
    """Begin of the reservation of its machines, before which the cloud has none; null for no period."""
    ends: datetime | None = None
    """Its end, at which the cloud removes the nodes."""
    together: int = 1
    """Nodes that are created and removed together, as those of a TPU slice."""
    system: bool = False
    """True for a pool of system pods alone."""

    def node_pool(self, start: float) -> NodePool:
        """Return the pool for the autoscaler's decisions.

        Args:
            start: Unix time of the replay's start.
        """
        accelerator = self.accelerator
        same: dict[str, Any] = {name: getattr(self, name) for name in _OF_NODE_POOL}
        return NodePool(
            **same,
            cluster="",
            allocatable={"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi"},
            accelerator=(accelerator.type, accelerator.count) if accelerator else None,
            accelerator_resource=accelerator.resource if accelerator else "",
            driver_installed=True,
            shares=accelerator.shares if accelerator else 1,
            reserved=(self.begins.timestamp() - start, self.ends.timestamp() - start)
            if self.begins and self.ends
            else None,
        )


_OF_NODE_POOL: Final = Pool.model_fields.keys() & {field.name for field in fields(NodePool)} - {"accelerator"}
"""Fields that the autoscaler's pool has, too."""


class Charge(Part):
    """A charge besides nodes, US dollars per hour."""

    item: str
    hourly: float = 0.0
    by_node: float = 0.0
    """Further ones for each node."""
    most_by_nodes: float | None = None
    """Maximum of those."""
    begins: datetime | None = None
    """Begin of the period of `hourly`, used or not; null for always."""
    ends: datetime | None = None
    """Its end."""

    def rate(self, nodes: int) -> float:
        """Return the charge with a number of nodes, outside of its period."""
        by_nodes = nodes * self.by_node
        hourly = 0.0 if self.begins else self.hourly
        return hourly + (by_nodes if self.most_by_nodes is None else min(by_nodes, self.most_by_nodes))


class CommitmentUse(Part):
    """Use of a commitment by the nodes of a pool."""

    units: int = Field(ge=1)
    """Units of it that a node uses."""
    part: str
    """The part of a node that they are."""
    hourly: float = Field(ge=0)
    """Price of that part, US dollars per hour, which the commitment saves."""
    reserved: int = Field(default=0, ge=0)
    """Nodes of a reservation that is billed like them, used or not; 0 for a pool without one."""


class Commitment(Part):
    """Machines or accelerators that are paid for, used or not; its own price is among the charges."""

    kind: str
    """Machine type or accelerator type."""
    count: int = Field(ge=0)
    hourly: float = Field(ge=0)
    """Price of one, US dollars per hour."""
    uses: dict[str, CommitmentUse] = Field(default_factory=dict[str, CommitmentUse])
    """Its use by each pool, in the order of its use."""

    def coverage(self) -> Coverage:
        """Return the commitment for the costs."""
        uses = {
            name: Use(use.units, use.part, Amount(use.hourly), use.reserved)
            for name, use in self.uses.items()
        }
        return Coverage(self.kind, self.count, self.hourly, uses)


class Cluster(Part):
    """A cluster, or a version of it."""

    name: str
    """Its name in the report."""
    pools: tuple[Pool, ...] = Field(min_length=1)
    objects: tuple[dict[str, Any], ...] = ()
    """Kueue's objects, as manifests: ResourceFlavors, AdmissionChecks, ProvisioningRequestConfigs, Cohorts,
    ClusterQueues, LocalQueues, WorkloadPriorityClasses. Without queues, jobs name a pool."""
    configuration: dict[str, Any] = Field(default_factory=_CONFIGURATION.copy)
    """Configuration of Kueue, API config.kueue.x-k8s.io/v1beta2."""
    namespaces: dict[str, dict[str, str]] = Field(default_factory=dict[str, dict[str, str]])
    """Labels of namespaces."""
    charges: tuple[Charge, ...] = ()
    """Charges besides nodes."""
    commitments: tuple[Commitment, ...] = ()
    """Commitments, each used by the nodes that no earlier one covers."""
    without_price: tuple[str, ...] = ()
    """Items without a known price: costs are lower bounds."""
    estimated: tuple[str, ...] = ()
    """Items with an estimated price."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Requests of a pod: CPUs in millicores, memory in MiB, accelerators."""

    cpu: int
    memory: int
    gpus: int = 0
    resource: str = ""

    def share_of(self, node: "Shape") -> float:
        """Return the part of a node that it takes: its largest share of a resource."""
        pairs = (self.cpu, node.cpu), (self.memory, node.memory), (self.gpus, node.gpus)
        return max((part / whole for part, whole in pairs if whole), default=0.0)


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A LocalQueue, or a pool for work in no queue.

    Attributes:
        name: namespace and name; a pool may have a namespace.
        cluster_queue: its ClusterQueue; empty for a pool.
        pools: names of the pools of its flavors, in order of preference.
    """

    name: str
    cluster_queue: str
    pools: tuple[str, ...]

    def __str__(self) -> str:
        """Return its kind and name."""
        return f"{'pool' if self.is_pool else 'queue'} {self.name}"

    @property
    def team(self) -> str:
        """Return the namespace of the team; `(none)` without one."""
        return self.name.rpartition("/")[0] or "(none)"

    @property
    def is_pool(self) -> bool:
        """Return whether it is a pool, whose pods wait for nodes alone."""
        return not self.cluster_queue


@dataclass(frozen=True, slots=True)
class Flavor:
    """A ResourceFlavor.

    Attributes:
        queued: whether they are provisioned by ProvisioningRequests.
        labels: node labels that it selects.
    """

    name: str
    pools: tuple[str, ...]
    queued: bool
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Declaration:
    """A cluster with what follows from its objects.

    Attributes:
        pools: its node pools, for the autoscaler.
        capacity: capacity of a node for pods, by pool.
        accelerators: type of accelerators, by pool; empty for none.
        start: Unix time of the replay's start.
        queues: its LocalQueues, by name.
        flavors: its ResourceFlavors, by name.
    """

    cluster: Cluster
    pools: tuple[NodePool, ...]
    capacity: Mapping[str, Shape]
    accelerators: Mapping[str, str]
    queues: Mapping[str, LocalQueue]
    flavors: Mapping[str, Flavor]
    priorities: Mapping[str, int]
    start: float = 0.0

    @classmethod
    def of(cls, cluster: Cluster, start: float = 0.0) -> Self:
        """Return a cluster with what follows from its objects, for a replay that starts at a Unix time."""
        pools = tuple(pool.node_pool(start) for pool in cluster.pools)
        flavors = {
            flavor["metadata"]["name"]: _flavor(flavor, pools)
            for flavor in of_kind(cluster.objects, "ResourceFlavor")
        }
        return cls(
            cluster=cluster,
            pools=pools,
            capacity={pool.name: _capacity(pool) for pool in cluster.pools},
            accelerators={pool.name: pool.accelerator[0] if pool.accelerator else "" for pool in pools},
            queues=dict(_queues(cluster.objects, flavors)),
            flavors=flavors,
            priorities={
                item["metadata"]["name"]: int(item["value"])
                for item in of_kind(cluster.objects, "WorkloadPriorityClass")
            },
            start=start,
        )

    @property
    def name(self) -> str:
        """Its name in the report."""
        return self.cluster.name

    @property
    def work_pools(self) -> tuple[str, ...]:
        """Names of the pools besides the system pool."""
        return tuple(pool.name for pool in self.cluster.pools if not pool.system)

    @property
    def without_price(self) -> tuple[str, ...]:
        """Items without a known price."""
        unpriced = (f"nodes of pool {pool.name}" for pool in self.pools if pool.hourly is None)
        return self.cluster.without_price or tuple(unpriced)

    @property
    def rates(self) -> Rates:
        """The charges as rates."""
        rates: dict[str, Rate] = {charge.item: charge.rate for charge in self.cluster.charges}
        committed = tuple(item.coverage() for item in self.cluster.commitments)
        periods = (
            (charge.item, charge.hourly, charge.begins.timestamp(), charge.ends.timestamp())
            for charge in self.cluster.charges
            if charge.begins and charge.ends
        )
        own = Rates(rates, self.without_price, self.cluster.estimated, committed, tuple(periods))
        return own.on(lambda time: time - self.start)

    def pool(self, name: str) -> NodePool:
        """Return a pool by name."""
        return next(pool for pool in self.pools if pool.name == name)

    def pool_queue(self, name: str) -> LocalQueue | None:
        """Return the pool that work in no queue names, as `pool` or `namespace/pool`; None if it is none, or
        a LocalQueue of another namespace has its name."""
        namespace, _, pool = name.rpartition("/")
        is_queue = namespace and any(queue.endswith(f"/{pool}") for queue in self.queues)
        return LocalQueue(name, "", (pool,)) if pool in self.capacity and not is_queue else None

    def present_nodes(self, running: "Iterable[tuple[tuple[str, ...], int, Shape]]") -> dict[str, int]:
        """Return the nodes that are ready at the start, by pool: at least those that running jobs fill.

        Args:
            running: the pools, the number of pods and the requests of each.
        """
        needed = dict.fromkeys(self.capacity, 0.0)
        for pools, pods, shape in running:
            for pool in pools[:1]:
                needed[pool] += pods * shape.share_of(self.capacity[pool])
        nodes = {
            pool.name: max(pool.existing, math.ceil(needed[pool.name] - 1e-9)) for pool in self.cluster.pools
        }
        return {pool: count for pool, count in nodes.items() if count}

    def with_nodes(self, nodes: Mapping[str, int]) -> Self:
        """Return the cluster with these nodes at the start; those of a queued pool come with their
        request."""
        pools = tuple(
            pool
            if pool.capacity == "queued"
            else pool.having(initial=min(pool.maximum, nodes.get(pool.name, 0)))
            for pool in self.pools
        )
        return replace(self, pools=pools)

    def selector(self, pools: Iterable[str], accelerator: str) -> dict[str, str]:
        """Return the node labels that the flavors with an accelerator share, among those of some pools."""
        chosen = {pool for pool in pools if self.accelerators[pool] == accelerator}
        labels = [flavor.labels for flavor in self.flavors.values() if chosen & set(flavor.pools)]
        return (
            dict(set[tuple[str, str]].intersection(*(set(one.items()) for one in labels))) if labels else {}
        )


def _capacity(pool: Pool) -> Shape:
    if pool.accelerator is None:
        return Shape(pool.cpu, pool.memory)
    count = pool.accelerator.count * pool.accelerator.shares
    return Shape(pool.cpu, pool.memory, count, pool.accelerator.resource)


def _flavor(item: Mapping[str, Any], pools: Iterable[NodePool]) -> Flavor:
    labels: Mapping[str, str] = item["spec"].get("nodeLabels", {})
    chosen = [pool for pool in pools if selects(labels, pool.labels)]
    return Flavor(
        item["metadata"]["name"],
        tuple(pool.name for pool in chosen),
        any(pool.capacity == "queued" for pool in chosen),
        labels,
    )


def _queues(
    objects: Iterable[Mapping[str, Any]], flavors: Mapping[str, Flavor]
) -> Iterator[tuple[str, LocalQueue]]:
    for name, (cluster_queue, names) in flavors_of_queues(list(objects)).items():
        pools = dict.fromkeys(pool for flavor in names if flavor in flavors for pool in flavors[flavor].pools)
        yield name, LocalQueue(name, cluster_queue, tuple(pools))
