"""Snapshot of a cluster: the input of the node pools' controllers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.placement import NodeTaint
from ebbtide.values.pod_requests import Amounts, amounts
from ebbtide_rehearsal.cloud.autoscaling import Autoscaling
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.objects import Object
from ebbtide_rehearsal.cloud.nodes.pods import Pod, Term, requirements
from ebbtide_rehearsal.cloud.nodes.scheduling import NodeInfo
from ebbtide_rehearsal.cloud.pools import NodePool

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
"""Key of the autoscaler's taint on a node that it removes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as read from the API.

    Attributes:
        name: its name.
        labels: its labels.
        annotations: its annotations.
        taints: its taints.
        allocatable: its allocatable resources.
        ready: its condition `Ready`.
        cordoned: its `unschedulable`.
        raw: the object.
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
        return self.ready and not self.cordoned and all(taint.key != TO_BE_DELETED for taint in self.taints)

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
        namespace: its namespace.
        name: its name.
        selector: selects its pods; empty for all.
        allowed: its `disruptionsAllowed`.
    """

    namespace: str
    name: str
    selector: Term
    allowed: int

    def covers(self, pod: Pod) -> bool:
        """Return whether a pod is selected."""
        return pod.namespace == self.namespace and all(
            requirement.holds(pod.labels) for requirement in self.selector
        )


@dataclass(frozen=True, slots=True)
class PodSet:
    """Identical pods of a ProvisioningRequest: a template and a count."""

    pod: Pod
    count: int


@dataclass(frozen=True, slots=True)
class ProvisioningRequest:
    """A ProvisioningRequest.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: its uid.
        kind: its `provisioningClassName`.
        sets: its pods.
        parameters: its parameters.
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
        pools: its node pools.
        machines: its machines, with and without a node.
        nodes: its nodes, by name.
        pods: its pods.
        daemons: a pod of each DaemonSet.
        budgets: its PodDisruptionBudgets.
        requests: its ProvisioningRequests.
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
    selector = part(raw, "spec", "selector")
    labels = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in part(selector, "matchLabels").items()
    ]
    return Budget(
        text(raw, "metadata", "namespace"),
        text(raw, "metadata", "name"),
        requirements([*labels, *parts(selector, "matchExpressions")]),
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
