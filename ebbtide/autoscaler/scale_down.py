"""Scale-down: unneeded nodes, and reasons to keep a node (kubernetes/autoscaler, FAQ, "How does scale-down
work?" and "What types of pods can prevent CA from removing a node?", 2026)."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ebbtide.autoscaler import backoff
from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import Machine, NodePool, billed_count
from ebbtide.autoscaler.scheduling import NodeInfo, Pod, largest_first, schedule
from ebbtide.autoscaler.snapshot import ClusterSnapshot, Node, share
from ebbtide.clients.kubernetes.objects import part
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS
from ebbtide.placement.profile import SAFE_TO_EVICT

UNNEEDED = "it was not needed for"
"""Beginning of the autoscaler's reason for removing a node."""

_MINUTE = 60
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass(frozen=True, slots=True)
class UnremovableNode:
    """A reason to keep a node that could otherwise be removed.

    Attributes:
        pod: the pod, as `namespace/name`; empty if the node itself is the reason.
        why: the reason, as the end of a sentence that begins with the pod or the node.
        message: id of GKE's message.
    """

    node: str
    pod: str
    why: str
    message: str

    @property
    def sentence(self) -> str:
        """Sentence for the log."""
        subject = f"pod {self.pod} {self.why}" if self.pod else f"it {self.why}"
        return f"Node {self.node} is kept: {subject}."


@dataclass(frozen=True, slots=True)
class ScaleDownReview:
    """The autoscaler's review of all nodes.

    Attributes:
        unneeded: time since which nodes are unneeded, by name.
        unused: time since which nodes are underutilized, by name.
        removable: nodes to remove now.
        unremovable: reasons to keep nodes that would otherwise be removed.
    """

    unneeded: Mapping[str, float]
    unused: Mapping[str, float]
    removable: tuple[str, ...]
    unremovable: tuple[UnremovableNode, ...]


def blocking_reason(pod: Pod, snapshot: ClusterSnapshot) -> tuple[str, str] | None:
    """Return why a pod keeps its node, as the end of a sentence that begins with the pod, and the id of GKE's
    message; None if it does not."""
    annotation = pod.annotations.get(SAFE_TO_EVICT)
    budgets = [budget for budget in snapshot.budgets if budget.covers(pod)]
    if annotation == "false":
        return f"is annotated {SAFE_TO_EVICT}: false", backoff.NOT_SAFE_TO_EVICT
    if annotation != "true":
        if not pod.owner:
            return "has no controller that would recreate it", backoff.NO_CONTROLLER
        if snapshot.autoscaling.skip_system_pods and pod.namespace == "kube-system" and not budgets:
            return "is in kube-system without a PodDisruptionBudget", backoff.SYSTEM_POD
        if snapshot.autoscaling.skip_local_storage and pod.local_storage:
            return "has local storage", backoff.LOCAL_STORAGE
    for budget in budgets:
        if budget.allowed < 1:
            why = f"is covered by the PodDisruptionBudget {budget.name}, which allows no disruption"
            return why, backoff.DISRUPTION_BUDGET
    return None


def _candidate(machine: Machine, snapshot: ClusterSnapshot) -> Node | None:
    pool, node = snapshot.pool(machine), snapshot.nodes.get(machine.name)
    if pool is None or node is None or machine.state != "running":
        return None
    scaled = pool.autoscaled or pool.capacity in ("queued", "flex-start")
    used = share(
        snapshot.on(node.name),
        node,
        pool.accelerator_resource,
        daemons_count=snapshot.autoscaling.daemons_count,
    )
    return node if scaled and used < snapshot.autoscaling.utilization else None


def idle_seconds(snapshot: ClusterSnapshot, settings: NodeSettings, pool: NodePool | None) -> float:
    """Return how long a node of a pool must be unneeded before its removal, in simulated seconds: as set by
    its ComputeClass, or else by the cluster (GKE docs, reference/crds/computeclass,
    `autoscalingPolicy.consolidationDelayMinutes`, 2026)."""
    name = pool.labels.get(COMPUTE_CLASS, "") if pool else ""
    minutes = part(snapshot.classes, name, "autoscalingPolicy").get("consolidationDelayMinutes")
    idle = snapshot.autoscaling.idle_seconds if minutes is None else minutes * _MINUTE
    return max(idle, settings.least_idle_seconds)


def review(
    snapshot: ClusterSnapshot,
    before: ScaleDownReview,
    booked: AbstractSet[str],
    last_scale_up: float | None,
    settings: NodeSettings,
) -> ScaleDownReview:
    """Review all nodes.

    Args:
        before: the last review.
        booked: names of nodes that are booked for pods of requests.
        last_scale_up: time of the last scale-up, in simulated seconds; None for never.
    """
    unneeded: dict[str, float] = {}
    unused: dict[str, float] = {}
    removable: list[str] = []
    unremovable: list[UnremovableNode] = []
    delay_over = (
        last_scale_up is None or snapshot.now - last_scale_up >= snapshot.autoscaling.delay_after_add_seconds
    )
    machines = [machine for machine in snapshot.machines if _candidate(machine, snapshot)]
    moved = {machine.name: movable(snapshot, machine.name) for machine in machines}
    # Empty nodes first, then those that were unneeded before (kubernetes/autoscaler@1959f5f6, main.go), in
    # arbitrary order: here that of time, which does not depend on names.
    machines.sort(
        key=lambda machine: (
            bool(moved[machine.name]),
            before.unneeded.get(machine.name, math.inf),
            machine.name,
        )
    )
    destinations: dict[str, NodeInfo] = {
        machine.name: node.node_info(snapshot.on(node.name))
        for machine in snapshot.machines
        if (node := snapshot.nodes.get(machine.name)) and node.is_schedulable and machine.state == "running"
    }
    for machine in machines:
        pool = snapshot.pool(machine)
        leaving = sum(other.name in unneeded and other.pool == machine.pool for other in snapshot.machines)
        if pool is None or billed_count(snapshot.machines, pool) - leaving <= pool.minimum:
            continue
        name, pods = machine.name, moved[machine.name]
        idle = idle_seconds(snapshot, settings, pool)
        unused[name] = before.unused.get(name, snapshot.now)
        blocking = _blocked(snapshot, snapshot.nodes[name], pods)
        if not blocking:
            others = [node for other, node in destinations.items() if other != name]
            placed, unplaced = schedule(largest_first(pods), others)
            blocking = [
                UnremovableNode(name, pod.id, "fits on no other node", backoff.NO_PLACE) for pod in unplaced
            ]
            if not blocking:
                destinations.update({node.name: node for node in placed})
        if blocking or name in booked:
            is_due = snapshot.now - unused[name] >= idle
            unremovable += blocking if is_due else []
            continue
        unneeded[name] = before.unneeded.get(name, snapshot.now)
        destinations.pop(name, None)
        if delay_over and snapshot.now - unneeded[name] >= idle:
            removable.append(name)
    return ScaleDownReview(unneeded, unused, _whole_slices(removable, snapshot), tuple(unremovable))


def _whole_slices(removable: Sequence[str], snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Return the nodes that can be removed without splitting a TPU slice (GKE docs, tpus, 2026)."""
    of_slices = {pool.name for pool in snapshot.pools if pool.together > 1}
    staying = {
        machine.pool
        for machine in snapshot.machines
        if not machine.is_leaving and machine.name not in removable
    }
    pool_of = {machine.name: machine.pool for machine in snapshot.machines}
    return tuple(name for name in removable if pool_of[name] not in of_slices & staying)


def movable(snapshot: ClusterSnapshot, node: str) -> list[Pod]:
    """Return the pods that a node's removal would move."""
    return [pod for pod in snapshot.on(node) if not pod.of_node and not pod.deleting]


def _blocked(snapshot: ClusterSnapshot, node: Node, pods: Sequence[Pod]) -> list[UnremovableNode]:
    if node.annotations.get(SCALE_DOWN_DISABLED) == "true":
        why = f"is annotated {SCALE_DOWN_DISABLED}"
        return [UnremovableNode(node.name, "", why, backoff.SCALE_DOWN_DISABLED)]
    return [
        UnremovableNode(node.name, pod.id, *reason)
        for pod in pods
        if (reason := blocking_reason(pod, snapshot))
    ]
