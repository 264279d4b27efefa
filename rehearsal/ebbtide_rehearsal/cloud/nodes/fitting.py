"""Whether a pod fits a node, as the scheduler sees it, and how many nodes a number of pods needs.

The scheduler's filters that are looked at: NodeAffinity, TaintToleration, NodeResourcesFit, VolumeBinding
(zones). Affinity between pods and spread constraints are not: a pod that has them may be
promised a node that the scheduler then refuses, as it sees them all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from ebbtide_rehearsal.cloud.nodes.objects import Amounts
from ebbtide_rehearsal.cloud.nodes.pods import Pod, Toleration
from ebbtide_rehearsal.cloud.pools import Taint

ZONE: Final = "topology.kubernetes.io/zone"
_FORBIDS: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Room:
    """A node, there or to come, and what is free on it.

    Attributes:
        name: the node's.
        labels: its labels.
        taints: its taints.
        free: what may still be asked for.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    free: Amounts

    def less(self, pod: Pod) -> "Room":
        """The same with a pod on it."""
        left = {name: amount - pod.requests.get(name, Decimal(0)) for name, amount in self.free.items()}
        return replace(self, free=left)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations is for a taint."""
    return any(
        each.effect in ("", taint.effect)
        and each.key in ("", taint.key)
        and (each.operator == "Exists" or (each.key != "" and each.value == taint.value))
        for each in tolerations
    )


def obstacle(pod: Pod, room: Room) -> str:
    """Why a pod does not fit, in the scheduler's words; empty when it does."""
    labels = {**room.labels, "metadata.name": room.name}
    if any(labels.get(key) != value for key, value in pod.selector.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    if pod.affinity and not any(term and all(each.holds(labels) for each in term) for term in pod.affinity):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in room.taints:
        if taint.effect in _FORBIDS and not tolerates(pod.tolerations, taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    for name, amount in pod.requests.items():
        if amount > room.free.get(name, Decimal(0)):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    if pod.zones and room.labels.get(ZONE) not in pod.zones:
        return "node(s) had volume node affinity conflict"
    return ""


def largest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Pods in the order in which they are packed."""
    return sorted(pods, key=lambda pod: (*_size(pod), pod.id), reverse=True)


def _size(pod: Pod) -> tuple[Decimal, Decimal, Decimal]:
    zero = Decimal(0)
    special = sum(
        (amount for name, amount in pod.requests.items() if name not in ("cpu", "memory", "pods")), zero
    )
    return special, pod.requests.get("cpu", zero), pod.requests.get("memory", zero)


def place(pods: Iterable[Pod], rooms: Sequence[Room]) -> tuple[list[Room], list[Pod]]:
    """Put pods where they fit, one after the other.

    Returns:
        What is left of each room, and the pods that fit nowhere.
    """
    left, without = list(rooms), list[Pod]()
    for pod in pods:
        number = next((number for number, room in enumerate(left) if not obstacle(pod, room)), None)
        if number is None:
            without.append(pod)
        else:
            left[number] = left[number].less(pod)
    return left, without


def pack(pods: Iterable[Pod], room: Room, most: int) -> tuple[list[Room], list[Pod]]:
    """Put pods on as few new nodes as may be.

    Args:
        pods: the pods; those that do not fit even an empty node are left.
        room: a new node.
        most: how many of it there may be.

    Returns:
        What is left of each new node, and the pods that got one.
    """
    used, placed = list[Room](), list[Pod]()
    for pod in pods:
        if obstacle(pod, room):
            continue
        number = next((number for number, each in enumerate(used) if not obstacle(pod, each)), None)
        if number is not None:
            used[number] = used[number].less(pod)
        elif len(used) < most:
            used.append(room.less(pod))
        else:
            continue
        placed.append(pod)
    return used, placed
