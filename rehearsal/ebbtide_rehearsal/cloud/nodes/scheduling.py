"""Scheduling of pods on nodes by the scheduler's filters, and the number of nodes that pods need.

Filters: NodeAffinity, TaintToleration, NodeResourcesFit, VolumeBinding (zones). Pod affinity and topology
spread constraints are omitted: the autoscaler may add a node for such a pod that the scheduler, which applies
all filters, then rejects."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from ebbtide.placement import NodeTaint
from ebbtide.placement.profile import Toleration
from ebbtide.values.pod_requests import Amounts
from ebbtide_rehearsal.cloud.nodes.pods import Pod

ZONE: Final = "topology.kubernetes.io/zone"
_FORBIDS: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """An existing or new node with its free capacity.

    Attributes:
        name: name of the node.
        labels: its labels.
        taints: its taints.
        free: its free capacity.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...]
    free: Amounts

    def less(self, pod: Pod) -> "NodeInfo":
        """Return the node with a pod's requests subtracted."""
        free = {name: amount - pod.requests.get(name, Decimal(0)) for name, amount in self.free.items()}
        return replace(self, free=free)


def tolerates(tolerations: Iterable[Toleration], taint: NodeTaint) -> bool:
    """Return whether one of the tolerations matches a taint."""
    return any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.operator == "Exists" or (toleration.key != "" and toleration.value == taint.value))
        for toleration in tolerations
    )


def obstacle(pod: Pod, node_info: NodeInfo) -> str:
    """Return the scheduler's reason why a pod does not fit; empty if it fits."""
    labels = {**node_info.labels, "metadata.name": node_info.name}
    if any(labels.get(key) != value for key, value in pod.selector.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    if pod.affinity and not any(
        term and all(requirement.holds(labels) for requirement in term) for term in pod.affinity
    ):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in node_info.taints:
        if taint.effect in _FORBIDS and not tolerates(pod.tolerations, taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    for name, amount in pod.requests.items():
        if amount > node_info.free.get(name, Decimal(0)):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    if pod.zones and node_info.labels.get(ZONE) not in pod.zones:
        return "node(s) had volume node affinity conflict"
    return ""


def largest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in packing order, the largest first."""
    return sorted(pods, key=lambda pod: (*_size(pod), pod.id), reverse=True)


def _size(pod: Pod) -> tuple[Decimal, Decimal, Decimal]:
    zero = Decimal(0)
    special = sum(
        (amount for name, amount in pod.requests.items() if name not in ("cpu", "memory", "pods")), zero
    )
    return special, pod.requests.get("cpu", zero), pod.requests.get("memory", zero)


def schedule(pods: Iterable[Pod], node_infos: Sequence[NodeInfo]) -> tuple[list[NodeInfo], list[Pod]]:
    """Schedule pods one by one on nodes where they fit.

    Returns:
        The nodes with their remaining capacity, and the pods that fit nowhere.
    """
    remaining, without = list(node_infos), list[Pod]()
    for pod in pods:
        number = next(
            (number for number, node_info in enumerate(remaining) if not obstacle(pod, node_info)), None
        )
        if number is None:
            without.append(pod)
        else:
            remaining[number] = remaining[number].less(pod)
    return remaining, without


def pack(pods: Iterable[Pod], node_info: NodeInfo, most: int) -> tuple[list[NodeInfo], list[Pod]]:
    """Pack pods on as few new nodes as possible.

    Args:
        pods: the pods; those that do not fit even an empty node are skipped.
        node_info: a new node.
        most: the maximum number of new nodes.

    Returns:
        The new nodes with their remaining capacity, and the pods on them.
    """
    used, placed = list[NodeInfo](), list[Pod]()
    for pod in pods:
        if obstacle(pod, node_info):
            continue
        number = next((number for number, node in enumerate(used) if not obstacle(pod, node)), None)
        if number is not None:
            used[number] = used[number].less(pod)
        elif len(used) < most:
            used.append(node_info.less(pod))
        else:
            continue
        placed.append(pod)
    return used, placed
