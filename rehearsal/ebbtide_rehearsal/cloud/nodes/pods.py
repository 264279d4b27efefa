"""Pods and pod templates, as read by the node pools' controllers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.placement.profile import Toleration
from ebbtide.values.pod_requests import Amounts, pod_requests, total
from ebbtide_rehearsal.cloud.nodes.objects import Object

CONSUMES = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Current and deprecated annotation of a pod that consumes a ProvisioningRequest."""

_NAME = "metadata.name"
_FROM_DAEMON = ("DaemonSet", "Node")
_LOCAL = ("emptyDir", "hostPath")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement on a label; the key `metadata.name` means the node's name."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement."""
        value = labels.get(self.key)
        if self.operator in ("Gt", "Lt"):
            return value is not None and _beyond(value, self.operator, self.values[0])
        return {
            "In": value in self.values,
            "NotIn": value not in self.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[self.operator]


def _beyond(value: str, operator: str, bound: str) -> bool:
    return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)


Term = tuple[Requirement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod or a pod template.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: its uid.
        node: its node; empty for none.
        phase: its phase.
        requests: sum of its requests, and 1 for `pods`.
        labels: its labels.
        annotations: its annotations.
        selector: its `nodeSelector`.
        affinity: required node affinity, of which one term must match; empty for none.
        tolerations: its tolerations.
        zones: zones of its volumes; empty for any.
        owner: kind of its controller; empty for none.
        unschedulable: True if the scheduler found no node.
        deleting: True if it has a deletion timestamp.
        local_storage: True if it has a volume that is lost with the node.
        raw: the object.
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
    affinity: tuple[Term, ...] = ()
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


def requirements(expressions: Iterable[Object], key: str = "") -> Term:
    """Parse a selector's requirements; `key` replaces the key of each."""
    return tuple(
        Requirement(key or expression["key"], expression["operator"], tuple(expression.get("values") or ()))
        for expression in expressions
    )


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


def _affinity(spec: Object) -> tuple[Term, ...]:
    required = part(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(
        (
            *requirements(parts(term, "matchExpressions")),
            *requirements(parts(term, "matchFields"), _NAME),
        )
        for term in parts(required, "nodeSelectorTerms")
    )
