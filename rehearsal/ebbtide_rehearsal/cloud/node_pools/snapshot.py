"""Snapshot of a cluster, the input of the node pools' controllers: read it, and find its free capacity."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.placement import NodeTaint
from ebbtide.values.pod_requests import Amounts, amounts
from ebbtide_rehearsal.cloud.node_pools.machines import NOT_READY, UNINITIALIZED, Machine, machines, node_info
from ebbtide_rehearsal.cloud.node_pools.scheduling import (
    ZONE,
    NodeInfo,
    Object,
    Pod,
    Term,
    largest_first,
    read_pod,
    requirements,
    schedule,
)
from ebbtide_rehearsal.cloud.pools import Autoscaling, NodePool, pools, settings_of
from ebbtide_rehearsal.cloud.store import Store

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
"""Key of the autoscaler's taint on a node that it removes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as read from the API.

    Attributes:
        allocatable: its allocatable resources.
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


_CLAIMS: Final = "/api/v1/persistentvolumeclaims"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
_CLASSES: Final = "/apis/cloud.google.com/v1/computeclasses"
_PRIORITIES: Final = "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-priority-expander"
_ZONES: Final = (ZONE, "topology.gke.io/zone", "topology.disk.csi.azure.com/zone")


class SnapshotReader:
    """Reads snapshots of a cluster."""

    def __init__(self, api: Api, store: Store, cluster: str) -> None:
        """Read a cluster from its API and from the fake cloud's state, by its id."""
        self._api, self._store, self._cluster = api, store, cluster
        self._requests: Mapping[str, Object] = {}

    def snapshot(self) -> ClusterSnapshot:
        """Return a snapshot of the cluster."""
        raw = self._api.items("/api/v1/pods")
        zones = self._volume_zones() if any(_claims(pod) for pod in raw) else {}
        priorities = self._api.find(_PRIORITIES)
        requests = self._items(_REQUESTS)
        self._requests = {text(request, "metadata", "uid"): request for request in requests}
        nodes = [read_node(node) for node in self._api.items("/api/v1/nodes")]
        return ClusterSnapshot(
            now=self._store.clock.now(),
            pools=pools(self._store, self._cluster),
            machines=machines(self._store, self._cluster),
            nodes={node.name: node for node in nodes},
            pods=[read_pod(pod, _zones(pod, zones)) for pod in raw],
            daemons=[_daemon(daemon_set) for daemon_set in self._api.items("/apis/apps/v1/daemonsets")],
            budgets=[
                read_budget(budget) for budget in self._api.items("/apis/policy/v1/poddisruptionbudgets")
            ],
            requests=[self._request(request) for request in requests],
            classes={
                text(compute_class, "metadata", "name"): part(compute_class, "spec")
                for compute_class in self._items(_CLASSES)
            },
            priorities=text(priorities, "data", "priorities") if priorities else "",
            autoscaling=settings_of(self._store, self._cluster),
        )

    def raw_request(self, request: ProvisioningRequest) -> Object:
        """Return a ProvisioningRequest as of the last snapshot."""
        return self._requests[request.uid]

    def _items(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a kind, which may not be installed."""
        response = self._api.find(path)
        return response["items"] if response else []

    def _volume_zones(self) -> dict[str, frozenset[str]]:
        """Return the zones of claims' volumes, by the claims' namespace and name."""
        volumes = {
            text(volume, "metadata", "name"): _volume_zone(volume) for volume in self._api.items(_VOLUMES)
        }
        return {
            f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}": zone
            for claim in self._api.items(_CLAIMS)
            if (zone := volumes.get(text(claim, "spec", "volumeName"), frozenset()))
        }

    def _request(self, raw: Object) -> ProvisioningRequest:
        namespace = text(raw, "metadata", "namespace")
        return ProvisioningRequest(
            namespace=namespace,
            name=text(raw, "metadata", "name"),
            uid=text(raw, "metadata", "uid"),
            kind=text(raw, "spec", "provisioningClassName"),
            sets=tuple(
                PodSet(read_pod(template), int(pod_set["count"]))
                for pod_set in parts(raw, "spec", "podSets")
                if (template := self._template(namespace, text(pod_set, "podTemplateRef", "name")))
            ),
            parameters=part(raw, "spec", "parameters"),
            conditions=_conditions(raw, "True"),
            denied=_conditions(raw, "False"),
        )

    def _template(self, namespace: str, name: str) -> Object:
        template = self._api.find(f"/api/v1/namespaces/{namespace}/podtemplates/{name}")
        return part(template, "template") if template else {}


def _conditions(raw: Object, status: str) -> frozenset[str]:
    return frozenset(
        condition["type"] for condition in parts(raw, "status", "conditions") if condition["status"] == status
    )


def _claims(pod: Object) -> list[str]:
    namespace = text(pod, "metadata", "namespace")
    named = [text(volume, "persistentVolumeClaim", "claimName") for volume in parts(pod, "spec", "volumes")]
    return [f"{namespace}/{name}" for name in named if name]


def _zones(pod: Object, zones: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the common zones of all of a pod's volumes; empty for any. No common zone is {""}."""
    bound = [zones[claim] for claim in _claims(pod) if claim in zones]
    if not bound:
        return frozenset()
    first, *others = bound
    return first.intersection(*others) or frozenset({""})


def _volume_zone(volume: Object) -> frozenset[str]:
    terms = parts(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
    return frozenset(
        value
        for term in terms
        for expression in parts(term, "matchExpressions")
        if expression["key"] in _ZONES
        for value in expression.get("values") or ()
    )


def _daemon(raw: Object) -> Pod:
    return read_pod(part(raw, "spec", "template"))


QUEUED: Final = "queued-provisioning.gke.io"
"""GKE's provisioning class for queued capacity."""

ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""The cluster autoscaler's provisioning class for all nodes or none."""

CHECK: Final = "check-capacity.autoscaling.x-k8s.io"
"""The cluster autoscaler's provisioning class for existing free capacity."""


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
    status: bool
    reason: str
    message: str
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
        if (
            request.kind in (ATOMIC, CHECK)
            and booked
            and _running_pods(request, snapshot) < len(request.pods)
        ):
            yield from request.pods


def _running_pods(request: ProvisioningRequest, snapshot: ClusterSnapshot) -> int:
    return sum(bool(pod.node) and f"{pod.namespace}/{pod.request}" == request.id for pod in snapshot.pods)


def _complete(snapshot: ClusterSnapshot, pool: NodePool, name: str) -> bool:
    """Return whether a node has its accelerators and no startup taint."""
    node = snapshot.nodes[name]
    shown = not pool.accelerator or pool.accelerator_resource in node.allocatable
    young = any(taint.key in (UNINITIALIZED, NOT_READY) for taint in node.taints)
    return shown and not young and (node.ready or node.cordoned)
