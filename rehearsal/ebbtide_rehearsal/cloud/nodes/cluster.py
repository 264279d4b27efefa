"""A cluster as the node pools' controllers see it at one time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ebbtide.kubernetes_api.parts import part, parts, text
from ebbtide_rehearsal.cloud.autoscaling import Autoscaling
from ebbtide_rehearsal.cloud.nodes.fitting import Room
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.objects import Amounts, Object, amounts
from ebbtide_rehearsal.cloud.nodes.pods import Pod, Term, requirements
from ebbtide_rehearsal.cloud.pools import NodePool, Taint

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
"""Key of the taint that the autoscaler puts on a node that it removes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as the API has it.

    Attributes:
        name: its name.
        labels: its labels.
        annotations: its annotations.
        taints: its taints.
        allocatable: what pods may ask for in all.
        ready: whether its kubelet says so.
        cordoned: whether it takes no new pods.
        raw: the object.
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Amounts
    ready: bool
    cordoned: bool
    raw: Object = field(default_factory=dict[str, Any], compare=False, repr=False)

    @property
    def open(self) -> bool:
        """Whether pods may come."""
        return self.ready and not self.cordoned and all(taint.key != TO_BE_DELETED for taint in self.taints)

    def room(self, pods: Sequence[Pod]) -> Room:
        """What is free on it beside these pods."""
        empty = Room(self.name, self.labels, self.taints, self.allocatable)
        for pod in pods:
            empty = empty.less(pod)
        return empty


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget.

    Attributes:
        namespace: its namespace.
        name: its name.
        selector: which pods it is for; empty for all.
        allowed: how many of them may be disrupted now.
    """

    namespace: str
    name: str
    selector: Term
    allowed: int

    def covers(self, pod: Pod) -> bool:
        """Whether a pod is one of its."""
        return pod.namespace == self.namespace and all(each.holds(pod.labels) for each in self.selector)


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of a ProvisioningRequest that are alike: what one is like, and how many."""

    pod: Pod
    count: int


@dataclass(frozen=True, slots=True)
class Request:
    """A ProvisioningRequest.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: its uid.
        kind: its `provisioningClassName`.
        sets: its pods.
        parameters: what its class is told.
        conditions: those that are true.
        denied: those that are false.
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
        return [each.pod for each in self.sets for _ in range(each.count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A cluster at one time.

    Attributes:
        now: simulated seconds since the start.
        pools: its node pools.
        machines: the machines behind its nodes.
        nodes: its nodes, by name.
        pods: its pods.
        daemons: what each DaemonSet puts on a node.
        budgets: its PodDisruptionBudgets.
        requests: its ProvisioningRequests.
        classes: its ComputeClasses' specifications, by name.
        priorities: the node pools' priorities for AKS's autoscaler, as its ConfigMap has them; empty without.
        told: what the autoscaler is told.
    """

    now: float
    pools: Sequence[NodePool]
    machines: Sequence[Machine]
    nodes: Mapping[str, Node]
    pods: Sequence[Pod]
    daemons: Sequence[Pod] = ()
    budgets: Sequence[Budget] = ()
    requests: Sequence[Request] = ()
    classes: Mapping[str, Object] = field(default_factory=dict[str, Object])
    priorities: str = ""
    told: Autoscaling = field(default_factory=Autoscaling)

    def on(self, node: str) -> list[Pod]:
        """The pods on a node that have not ended."""
        return [pod for pod in self.pods if pod.node == node and not pod.ended]

    def pool(self, machine: Machine) -> NodePool | None:
        """A machine's pool; None where it was deleted."""
        return next((pool for pool in self.pools if pool.name == machine.pool), None)


def read_node(raw: Object) -> Node:
    """A node as the API has it."""
    spec, status = part(raw, "spec"), part(raw, "status")
    return Node(
        name=text(raw, "metadata", "name"),
        labels=part(raw, "metadata", "labels"),
        annotations=part(raw, "metadata", "annotations"),
        taints=tuple(
            Taint(each["key"], text(each, "value"), each["effect"]) for each in parts(spec, "taints")
        ),
        allocatable=amounts(part(status, "allocatable")),
        ready=any(
            each["type"] == "Ready" and each["status"] == "True" for each in parts(status, "conditions")
        ),
        cordoned=bool(spec.get("unschedulable")),
        raw=raw,
    )


def read_budget(raw: Object) -> Budget:
    """A PodDisruptionBudget as the API has it."""
    selector = part(raw, "spec", "selector")
    wanted = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in part(selector, "matchLabels").items()
    ]
    return Budget(
        text(raw, "metadata", "namespace"),
        text(raw, "metadata", "name"),
        requirements([*wanted, *parts(selector, "matchExpressions")]),
        int(part(raw, "status").get("disruptionsAllowed") or 0),
    )


def share(pods: Sequence[Pod], node: Node, accelerator: str, *, daemons_count: bool) -> Decimal:
    """How much of a node is asked for, as the autoscaler counts it: of its accelerators where it has any,
    else the larger of processors and memory (kubernetes/autoscaler, FAQ, 2026). What DaemonSets ask for is
    taken off the node where it does not count (there, simulator/utilization, 2026)."""
    if node.allocatable.get(accelerator):
        return _asked(pods, accelerator) / node.allocatable[accelerator]
    daemons = [] if daemons_count else [pod for pod in pods if pod.of_node]
    rest = pods if daemons_count else [pod for pod in pods if not pod.of_node]
    shares = [
        _asked(rest, name) / offered
        for name in ("cpu", "memory")
        if (offered := node.allocatable.get(name, Decimal(0)) - _asked(daemons, name)) > 0
    ]
    return max(shares, default=Decimal(0))


def _asked(pods: Sequence[Pod], name: str) -> Decimal:
    return sum((pod.requests.get(name, Decimal(0)) for pod in pods), Decimal(0))
