"""What the node pools' controllers look at of a pod, and how they read it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ebbtide.kubernetes_api.parts import part, parts, text
from ebbtide_rehearsal.cloud.nodes.objects import Amounts, Object, amounts, most, total

CONSUMES = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations of a pod that runs on what a ProvisioningRequest brought, the current and the older one."""

_NAME = "metadata.name"
_FROM_DAEMON = ("DaemonSet", "Node")
_LOCAL = ("emptyDir", "hostPath")


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration; an empty key tolerates any, an empty effect each."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is required of a label; the key `metadata.name` stands for the node's name."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether labels are as required."""
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
    """A pod, or what a template makes.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: its uid.
        node: the node it is bound to; empty for none.
        phase: as the API has it.
        requests: what it asks for in all, and one of `pods`.
        labels: its labels.
        annotations: its annotations.
        selector: its `nodeSelector`.
        affinity: required node affinity: one of these terms must hold; empty for none.
        tolerations: what it tolerates.
        zones: where its volumes are; empty for anywhere.
        owner: kind of its controller; empty without.
        unschedulable: whether the scheduler found no node.
        deleting: whether its deletion was asked for.
        local_storage: whether it has a volume that goes with the node.
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
        """Whether it belongs to its node: made by a DaemonSet, or by the kubelet itself."""
        return self.owner in _FROM_DAEMON

    @property
    def ended(self) -> bool:
        """Whether it will not run any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def request(self) -> str:
        """Name of the ProvisioningRequest that it waits for, and not for the autoscaler; empty for none."""
        return next((self.annotations[key] for key in CONSUMES if key in self.annotations), "")


def requirements(expressions: Iterable[Object], key: str = "") -> Term:
    """Requirements as a selector writes them, of the key that each names unless one is given."""
    return tuple(
        Requirement(key or each["key"], each["operator"], tuple(each.get("values") or ()))
        for each in expressions
    )


def read_pod(raw: Object, zones: frozenset[str] = frozenset()) -> Pod:
    """A pod as the API has it.

    Args:
        raw: the object, or a pod template.
        zones: where its volumes are.
    """
    metadata, spec = part(raw, "metadata"), part(raw, "spec")
    owners = [text(each, "kind") for each in parts(metadata, "ownerReferences") if each.get("controller")]
    return Pod(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        node=text(spec, "nodeName"),
        phase=text(raw, "status", "phase") or "Pending",
        requests=_requests(spec),
        labels=part(metadata, "labels"),
        annotations=part(metadata, "annotations"),
        selector=part(spec, "nodeSelector"),
        affinity=_affinity(spec),
        tolerations=tuple(_toleration(each) for each in parts(spec, "tolerations")),
        zones=zones,
        owner=next(iter(owners), ""),
        unschedulable=any(
            each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
            for each in parts(raw, "status", "conditions")
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


def _requests(spec: Object) -> dict[str, Decimal]:
    """What the scheduler counts: of all containers and sidecars together, or of the largest init container
    where that is more, and the overhead (Kubernetes docs, Init Containers and Sidecar Containers, 1.36)."""
    first: dict[str, Decimal] = {}
    beside: dict[str, Decimal] = {}
    for each in parts(spec, "initContainers"):
        together = total(beside, _asked(each))
        first = most(first, together)
        if each.get("restartPolicy") == "Always":
            beside = together
    running = total(beside, *(_asked(each) for each in parts(spec, "containers")))
    return total(most(first, running), amounts(part(spec, "overhead")), {"pods": Decimal(1)})


def _asked(container: Object) -> dict[str, Decimal]:
    return amounts({**part(container, "resources", "limits"), **part(container, "resources", "requests")})
