"""Pods as read by the node pools' controllers, and their scheduling on nodes.

Filters: NodeAffinity, TaintToleration, NodeResourcesFit, VolumeBinding (zones). Pod affinity and topology
spread constraints are omitted: the autoscaler may add a node for such a pod that the scheduler, which applies
all filters, then rejects.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.placement import NodeTaint
from ebbtide.placement.profile import Toleration
from ebbtide.values.pod_requests import Amounts, pod_requests, total
from ebbtide.values.selectors import selects

Object = Mapping[str, Any]

CONSUMES = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Current and deprecated annotation of a pod that consumes a ProvisioningRequest."""

_NAME = "metadata.name"
_FROM_DAEMON = ("DaemonSet", "Node")
_LOCAL = ("emptyDir", "hostPath")
ZONE: Final = "topology.kubernetes.io/zone"
_FORBIDS: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod or a pod template.

    Attributes:
        node: its node; empty for none.
        requests: sum of its requests, and 1 for `pods`.
        affinity: terms of the required node affinity, of which one must match, with the requirements on the
            node's name among those on labels; empty for none.
        zones: zones of its volumes; empty for any.
        owner: kind of its controller; empty for none.
        unschedulable: True if the scheduler found no node.
        deleting: True if it has a deletion timestamp.
        local_storage: True if it has a volume that is lost with the node.
    """

    namespace: str
    name: str
    uid: str = ""
    node: str = ""
    phase: str = "Pending"
    requests: Amounts = field(default_factory=dict[str, Decimal])
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    selector: Mapping[str, str] = field(default_factory=dict[str, str])
    affinity: Sequence[Object] = ()
    tolerations: tuple[Toleration, ...] = ()
    zones: frozenset[str] = frozenset()
    owner: str = ""
    unschedulable: bool = False
    deleting: bool = False
    local_storage: bool = False
    raw: Object = field(default_factory=dict[str, Any], compare=False, repr=False)

    @property
    def id(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def of_node(self) -> bool:
        """Return whether it belongs to its node: created by a DaemonSet, or a static pod."""
        return self.owner in _FROM_DAEMON

    @property
    def ended(self) -> bool:
        """Return whether it has succeeded or failed."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def request(self) -> str:
        """Name of the ProvisioningRequest that it consumes; empty for none."""
        return next((self.annotations[key] for key in CONSUMES if key in self.annotations), "")


def read_pod(raw: Object, zones: frozenset[str] = frozenset()) -> Pod:
    """Parse a pod.

    Args:
        raw: the object, or a pod template.
        zones: zones of its volumes.
    """
    metadata, spec = part(raw, "metadata"), part(raw, "spec")
    owners = [text(owner, "kind") for owner in parts(metadata, "ownerReferences") if owner.get("controller")]
    return Pod(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        node=text(spec, "nodeName"),
        phase=text(raw, "status", "phase") or "Pending",
        requests=total(pod_requests(spec), {"pods": Decimal(1)}),
        labels=part(metadata, "labels"),
        annotations=part(metadata, "annotations"),
        selector=part(spec, "nodeSelector"),
        affinity=_affinity(spec),
        tolerations=tuple(_toleration(toleration) for toleration in parts(spec, "tolerations")),
        zones=zones,
        owner=next(iter(owners), ""),
        unschedulable=any(
            condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
            for condition in parts(raw, "status", "conditions")
        ),
        deleting="deletionTimestamp" in metadata,
        local_storage=any(kind in volume for volume in parts(spec, "volumes") for kind in _LOCAL),
        raw=raw,
    )


def _toleration(raw: Object) -> Toleration:
    return Toleration(
        text(raw, "key"), text(raw, "operator") or "Equal", text(raw, "value"), text(raw, "effect")
    )


def _affinity(spec: Object) -> list[Object]:
    required = part(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return [
        {"matchExpressions": [*parts(term, "matchExpressions"), *parts(term, "matchFields")]}
        for term in parts(required, "nodeSelectorTerms")
    ]


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """An existing or new node with its free capacity."""

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


def mismatch(pod: Pod, labels: Mapping[str, str], taints: Iterable[NodeTaint]) -> str:
    """Return the scheduler's reason why a pod must not run on nodes of labels and taints; empty if it may."""
    is_led = not pod.affinity or any(
        term["matchExpressions"] and selects(term, labels) for term in pod.affinity
    )
    if not is_led or any(labels.get(key) != value for key, value in pod.selector.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in taints:
        if taint.effect in _FORBIDS and not tolerates(pod.tolerations, taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    return ""


def obstacle(pod: Pod, node_info: NodeInfo) -> str:
    """Return the scheduler's reason why a pod does not fit; empty if it fits."""
    if reason := mismatch(pod, {**node_info.labels, _NAME: node_info.name}, node_info.taints):
        return reason
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
