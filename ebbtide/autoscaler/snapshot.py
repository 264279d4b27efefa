"""Snapshot of a cluster, the input of all decisions: its objects, and its free capacity."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from ebbtide.autoscaler.nodes import NOT_READY, UNINITIALIZED, Autoscaling, Machine, NodePool, node_info
from ebbtide.autoscaler.scheduling import (
    NodeInfo,
    Object,
    Pod,
    largest_first,
    schedule,
)
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.placement import NodeTaint
from ebbtide.values.pod_requests import Amounts, amounts
from ebbtide.values.selectors import selects

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
"""Key of the autoscaler's taint on a node that it removes."""
QUEUED: Final = "queued-provisioning.gke.io"
"""GKE's provisioning class for queued capacity."""
ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""The cluster autoscaler's provisioning class for all nodes or none."""
CHECK: Final = "check-capacity.autoscaling.x-k8s.io"
"""The cluster autoscaler's provisioning class for existing free capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as read from the API.

    Attributes:
        ready: its condition `Ready`.
        cordoned: its `unschedulable`.
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[NodeTaint, ...]
    allocatable: Amounts
    ready: bool
    cordoned: bool
    raw: Object = field(default_factory=dict[str, Any], compare=False, repr=False)

    @property
    def is_schedulable(self) -> bool:
        """Return whether new pods can be scheduled on the node."""
        return self.ready and not self.cordoned and not self.is_to_be_deleted

    @property
    def is_to_be_deleted(self) -> bool:
        """Return whether it has the taint of nodes that the autoscaler removes."""
        return any(taint.key == TO_BE_DELETED for taint in self.taints)

    def node_info(self, pods: Sequence[Pod]) -> NodeInfo:
        """Return the node's free capacity, given the pods on it."""
        empty = NodeInfo(self.name, self.labels, self.taints, self.allocatable)
        for pod in pods:
            empty = empty.less(pod)
        return empty


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget.

    Attributes:
        selector: selects its pods; empty for all.
        allowed: its `disruptionsAllowed`.
    """

    namespace: str
    name: str
    selector: Object
    allowed: int

    def covers(self, pod: Pod) -> bool:
        """Return whether a pod is selected."""
        return pod.namespace == self.namespace and bool(selects(self.selector, pod.labels))


@dataclass(frozen=True, slots=True)
class PodSet:
    """Identical pods of a ProvisioningRequest: a template and a count."""

    pod: Pod
    count: int


@dataclass(frozen=True, slots=True)
class ProvisioningRequest:
    """A ProvisioningRequest.

    Attributes:
        kind: its `provisioningClassName`.
        conditions: types of its conditions that are true.
        denied: types of its conditions that are false.
    """

    namespace: str
    name: str
    uid: str
    kind: str
    sets: tuple[PodSet, ...]
    parameters: Mapping[str, str]
    conditions: frozenset[str]
    denied: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def pods(self) -> list[Pod]:
        """All of its pods."""
        return [pod_set.pod for pod_set in self.sets for _ in range(pod_set.count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """State of a cluster at one time.

    Attributes:
        now: simulated seconds since the start.
        machines: its machines, with and without a node.
        nodes: its nodes, by name.
        daemons: a pod of each DaemonSet.
        classes: its ComputeClasses' specifications, by name.
        priorities: the ConfigMap of AKS's priority expander; empty without.
        autoscaling: the autoscaler's settings.
    """

    now: float
    pools: Sequence[NodePool]
    machines: Sequence[Machine]
    nodes: Mapping[str, Node]
    pods: Sequence[Pod]
    daemons: Sequence[Pod] = ()
    budgets: Sequence[Budget] = ()
    requests: Sequence[ProvisioningRequest] = ()
    classes: Mapping[str, Object] = field(default_factory=dict[str, Object])
    priorities: str = ""
    autoscaling: Autoscaling = field(default_factory=Autoscaling)

    def on(self, node: str) -> list[Pod]:
        """Return the pods on a node that have not terminated."""
        return [pod for pod in self.pods if pod.node == node and not pod.ended]

    def pool(self, machine: Machine) -> NodePool | None:
        """Return a machine's pool; None if it was deleted."""
        return next((pool for pool in self.pools if pool.name == machine.pool), None)


def read_node(raw: Object) -> Node:
    """Parse a node."""
    spec, status = part(raw, "spec"), part(raw, "status")
    return Node(
        name=text(raw, "metadata", "name"),
        labels=part(raw, "metadata", "labels"),
        annotations=part(raw, "metadata", "annotations"),
        taints=tuple(
            NodeTaint(taint["key"], text(taint, "value"), taint["effect"]) for taint in parts(spec, "taints")
        ),
        allocatable=amounts(part(status, "allocatable")),
        ready=any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in parts(status, "conditions")
        ),
        cordoned=bool(spec.get("unschedulable")),
        raw=raw,
    )


def read_budget(raw: Object) -> Budget:
    """Parse a PodDisruptionBudget."""
    return Budget(
        text(raw, "metadata", "namespace"),
        text(raw, "metadata", "name"),
        part(raw, "spec", "selector"),
        int(part(raw, "status").get("disruptionsAllowed") or 0),
    )


def share(pods: Sequence[Pod], node: Node, accelerator: str, *, daemons_count: bool) -> Decimal:
    """Return a node's utilization as calculated by the autoscaler: of its accelerators if it has any, else
    the larger of CPU and memory (kubernetes/autoscaler, FAQ, 2026). Unless DaemonSets count, their requests
    are subtracted from the node (ibid., simulator/utilization, 2026)."""
    if node.allocatable.get(accelerator):
        return _requested(pods, accelerator) / node.allocatable[accelerator]
    daemons = [] if daemons_count else [pod for pod in pods if pod.of_node]
    rest = pods if daemons_count else [pod for pod in pods if not pod.of_node]
    shares = [
        _requested(rest, name) / offered
        for name in ("cpu", "memory")
        if (offered := node.allocatable.get(name, Decimal(0)) - _requested(daemons, name)) > 0
    ]
    return max(shares, default=Decimal(0))


def _requested(pods: Sequence[Pod], name: str) -> Decimal:
    return sum((pod.requests.get(name, Decimal(0)) for pod in pods), Decimal(0))


@dataclass(frozen=True, slots=True)
class RequestCondition:
    """A new condition of a request.

    Attributes:
        kind: type, such as `Provisioned`.
        reason: reason in one word.
        message: message as a sentence.
        details: `provisioningClassDetails`.
    """

    kind: str
    reason: str
    message: str
    status: bool = field(default=True, kw_only=True)
    details: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def sentence(self) -> str:
        """End of a sentence that begins with the request."""
        return f"is {'' if self.status else 'not '}{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Order:
    """An order for all nodes of a request at once.

    Attributes:
        zones: the zone of each node.
    """

    pool: NodePool
    zones: tuple[str, ...]


Decision = RequestCondition | Order | None
"""None keeps the request waiting."""


def node_infos(snapshot: ClusterSnapshot) -> list[NodeInfo]:
    """Return the existing and ordered nodes that accept pods, with their free capacity."""
    nodes: list[NodeInfo] = []
    for machine in snapshot.machines:
        pool, node = snapshot.pool(machine), snapshot.nodes.get(machine.name)
        if pool is None or machine.is_leaving or machine.state == "stopped":
            continue
        if node is None or machine.state == "starting" or not _complete(snapshot, pool, machine.name):
            nodes.append(node_info(pool, machine.zone, snapshot.daemons))
        elif node.is_schedulable:
            nodes.append(node.node_info(snapshot.on(node.name)))
    return nodes


def unbooked(snapshot: ClusterSnapshot) -> list[NodeInfo]:
    """Return the nodes without the capacity booked for pods of requests."""
    return schedule(largest_first(_booked_pods(snapshot)), node_infos(snapshot))[0]


def booked(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the names of nodes that are booked for the pods of a request."""
    queued = {
        request.id
        for request in snapshot.requests
        if request.kind == QUEUED and not request.conditions & {"BookingExpired", "Failed", "CapacityRevoked"}
    }
    brought = {machine.name for machine in snapshot.machines if machine.request in queued}
    nodes = zip(node_infos(snapshot), unbooked(snapshot), strict=True)
    return frozenset(brought | {before.name for before, after in nodes if before.free != after.free})


def _booked_pods(snapshot: ClusterSnapshot) -> Iterator[Pod]:
    """Return the pods of provisioned requests that the cluster autoscaler keeps capacity for: for ten
    minutes, or until all of them exist (kubernetes/autoscaler, processors/provreq/processor.go, 2026). GKE's
    queued requests have separate nodes."""
    for request in snapshot.requests:
        booked = "Provisioned" in request.conditions and not request.conditions & {"BookingExpired", "Failed"}
        if request.kind not in (ATOMIC, CHECK) or not booked:
            continue
        known = [pod for pod in snapshot.pods if pod.node and f"{pod.namespace}/{pod.request}" == request.id]
        if len(known) < len(request.pods):
            yield from request.pods


def _complete(snapshot: ClusterSnapshot, pool: NodePool, name: str) -> bool:
    """Return whether a node has its accelerators and no startup taint."""
    node = snapshot.nodes[name]
    shown = not pool.accelerator or pool.accelerator_resource in node.allocatable
    young = any(taint.key in (UNINITIALIZED, NOT_READY) for taint in node.taints)
    return shown and not young and (node.ready or node.cordoned)
