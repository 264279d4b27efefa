"""A stack's resources, clusters and records, from the engine's state."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, assert_never

from pydantic import TypeAdapter, ValidationError

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import FUTURE_RESERVATION, NODE_POOL, read_period
from ebbtide.analysis.recording.recording import STACK_TYPE, urn_name
from ebbtide.clients.clouds.interfaces import Account, ClusterIdentity, NodePoolSize
from ebbtide.clients.kubernetes.objects import part, parts, text, words
from ebbtide.declaration.model import expiry
from ebbtide.operations.engine.failures import OperationError
from ebbtide.values.cloud_kind import CloudKind, by_cloud

Item = Mapping[str, Any]
GKE_CLUSTER: Final = "gcp:container/cluster:Cluster"
AKS_CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
CLUSTERS: Final = {type_: cloud for cloud, type_ in by_cloud(gke=GKE_CLUSTER, aks=AKS_CLUSTER).items()}
"""Clouds by the type token of their clusters."""
_PREFIXES: Final = by_cloud(gke="gcp:container/", aks="azure-native:containerservice:")
DELETED_CLUSTERS: Final = "ebbtideDeletedClusters"
_BUCKETS: Final = frozenset({"gcp:storage/bucket:Bucket", "azure-native:storage:StorageAccount"})
_REGISTRIES: Final = frozenset(
    {"gcp:artifactregistry/repository:Repository", "azure-native:containerregistry:Registry"}
)
_KUBERNETES: Final = re.compile(r"^kubernetes:[^:]+:(?P<kind>\w+?)(?P<patch>Patch)?$")
_STASH: Final = f"{expiry.COMPONENT}$pulumi:index:Stash"
"""Types in the URN of the time of the first `up`."""
TENANT: Final = "ebbtide:addons:Tenant$"
"""Parent type in the URN of every resource in a team's namespace."""
_LABELS: Final = (("labels",), ("resourceLabels",), ("nodeConfig", "resourceLabels"), ("tags",))
"""Paths in the inputs of a resource to its labels in the cloud."""


def record(deployment: Mapping[str, Any], name: str) -> Any:
    """Return a record; None if there is none.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
    """
    stacks = (item for item in parts(deployment, "resources") if item["type"] == STACK_TYPE)
    return next((part(stack, "outputs").get(name) for stack in stacks), None)


def with_record(deployment: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return a state with a record; unchanged if the state has no resource of the stack itself.

    Args:
        deployment: as for `record`.
        value: its JSON value; None to remove the record.
    """

    def updated(stack: Mapping[str, Any]) -> Mapping[str, Any]:
        others = {key: output for key, output in part(stack, "outputs").items() if key != name}
        return {**stack, "outputs": others if value is None else {**others, name: value}}

    resources = [
        updated(item) if item["type"] == STACK_TYPE else item for item in parts(deployment, "resources")
    ]
    return {**deployment, "resources": resources}


def accounts(resources: Iterable[Item]) -> tuple[Account, ...]:
    """Return the projects and subscriptions of the state's clusters and node pools.

    Args:
        resources: `resources` of the output of `pulumi stack export`.
    """
    listed = [
        account
        for cloud, prefix in _PREFIXES.items()
        for item in resources
        if str(item["type"]).startswith(prefix) and (account := _account(item, cloud))
    ]
    return tuple(dict.fromkeys(listed))


def _account(item: Item, cloud: CloudKind) -> Account | None:
    """Return the project or subscription of a resource; None before it is known."""
    project = _known(item, "project") if cloud is CloudKind.GKE else ""
    is_known = project or (cloud is CloudKind.AKS and text(item, "id"))
    return account_of(project, text(item, "id")) if is_known else None


def account_of(project: str, identity: str) -> Account:
    """Return the account of a resource: its project on Google Cloud, or the subscription in its id on
    Azure, where it has no project."""
    if project:
        return Account(CloudKind.GKE, project)
    return Account(CloudKind.AKS, _segment(identity, "subscriptions"))


def clusters(resources: Iterable[Item]) -> Iterator[ClusterIdentity]:
    """Yield the clusters that the stack created, or began to create.

    Args:
        resources: resources of the state, and of its pending operations.
    """
    for item in resources:
        cloud = CLUSTERS.get(item["type"])
        if item.get("external") or cloud is None or (account := _account(item, cloud)) is None:
            continue
        match cloud:
            case CloudKind.GKE:
                yield ClusterIdentity(
                    account=account, location=_known(item, "location"), name=_known(item, "name")
                )
            case CloudKind.AKS:
                yield ClusterIdentity(
                    account=account,
                    location=_known(item, "location"),
                    name=_segment(text(item, "id"), "managedClusters"),
                    resource_group=_segment(text(item, "id"), "resourceGroups"),
                    node_resource_group=text(item, "outputs", "nodeResourceGroup"),
                )
            case _:
                assert_never(cloud)


def _known(item: Item, name: str) -> str:
    """Return an output, or the input of a resource whose creation was interrupted."""
    return str(part(item, "outputs").get(name) or part(item, "inputs").get(name) or "")


def _segment(identity: str, name: str) -> str:
    """Return the segment of a path after a named one; names are case-insensitive on Azure."""
    parts = identity.split("/")
    lower = [segment.lower() for segment in parts]
    return parts[lower.index(name.lower()) + 1] if name.lower() in lower[:-1] else ""


@dataclass(frozen=True, slots=True)
class DeletedClusters:
    """The clusters that a destroy deletes or has deleted.

    Attributes:
        identities: the clusters, with the ids and names that identify their resources.
        retained: ids of the disks and snapshots that are kept.
    """

    identities: tuple[ClusterIdentity, ...] = ()
    retained: frozenset[str] = frozenset()


_ADAPTER: Final = TypeAdapter(DeletedClusters)


def recorded_clusters(deployment: Mapping[str, Any]) -> DeletedClusters:
    """Return the record of an earlier destroy; empty without one.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
    """
    try:
        return _ADAPTER.validate_python(record(deployment, DELETED_CLUSTERS) or {})
    except ValidationError:
        return DeletedClusters()


def with_clusters(deployment: Mapping[str, Any], clusters: DeletedClusters) -> dict[str, Any]:
    """Return a state with a record of clusters; see `with_record`."""
    return with_record(deployment, DELETED_CLUSTERS, _ADAPTER.dump_python(clusters, mode="json"))


def merged_clusters(
    clusters: Iterable[ClusterIdentity], record: Iterable[ClusterIdentity]
) -> tuple[ClusterIdentity, ...]:
    """Return the clusters of a state and of a record without duplicates. The record has more detail."""
    return tuple({cluster.id: cluster for cluster in (*clusters, *record)}.values())


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A Kubernetes object: its kind and location."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class State:
    """The resources of a stack.

    Attributes:
        resources: number of resources that a destroy removes, including components.
        protected: names of the resources that the engine refuses to remove.
        owns_cluster: True if the stack created the cluster.
        buckets: buckets that remain with their contents.
        registries: container registries that remain with their images.
        reservations: names and ends of the requested reservations, which cannot be cancelled.
        objects: Kubernetes objects that the stack created.
        teams: namespaces with resources for a team.
        clusters: names of the clusters that the stack created.
        identities: identities of those clusters, and of clusters whose creation was interrupted.
        accounts: projects and subscriptions of its clusters and node pools.
        deleted: clusters that an earlier destroy has begun to delete.
        pending: names of the resources whose creation was interrupted.
        first_up: time of the first `up`; None for a permanent cluster.
        expires: expiry, the last one of several clusters; None for a permanent cluster.
        labelled: the earliest expiry in a label or tag; None without one. An interrupted update leaves an
            earlier one.
    """

    resources: int
    protected: tuple[str, ...]
    owns_cluster: bool
    buckets: tuple[str, ...]
    registries: tuple[str, ...]
    objects: frozenset[ObjectReference]
    teams: frozenset[str]
    clusters: tuple[str, ...] = ()
    identities: tuple[ClusterIdentity, ...] = ()
    accounts: tuple[Account, ...] = ()
    deleted: DeletedClusters = field(default_factory=DeletedClusters)
    pending: tuple[str, ...] = ()
    reservations: tuple[tuple[str, datetime], ...] = ()
    first_up: datetime | None = None
    expires: datetime | None = None
    labelled: datetime | None = None

    @property
    def namespaces(self) -> frozenset[str]:
        """Namespaces that the stack created."""
        return frozenset(item.name for item in self.objects if item.kind == "Namespace")

    @property
    def queues(self) -> frozenset[str]:
        """Names of the ClusterQueues that the stack created."""
        return frozenset(item.name for item in self.objects if item.kind == "ClusterQueue")

    @property
    def may_be_stopped(self) -> bool:
        """True if the stack created a cluster whose cloud can stop its API server, as AKS can."""
        return any(cluster.account.cloud is CloudKind.AKS for cluster in self.identities)


def read(deployment: Mapping[str, Any]) -> State:
    """Parse the output of `pulumi stack export`.

    Args:
        deployment: its `deployment`.
    """
    resources: list[Mapping[str, Any]] = [
        resource for resource in deployment.get("resources") or () if resource["type"] != STACK_TYPE
    ]
    objects: set[ObjectReference] = set()
    teams: set[str] = set()
    for resource in resources:
        kubernetes = _object(resource)
        if kubernetes is None:
            continue
        item, patch = kubernetes
        if not patch:
            objects.add(item)
        if TENANT in resource["urn"] and (
            namespace := item.name if item.kind == "Namespace" else item.namespace
        ):
            teams.add(namespace)
    names = tuple(
        _cloud_name(resource)
        for resource in resources
        if resource["type"] in CLUSTERS and not resource.get("external")
    )
    interrupted = [
        part(operation, "resource")
        for operation in parts(deployment, "pending_operations")
        if operation.get("type") == "creating"
    ]
    deleted = recorded_clusters(deployment)
    known_accounts = accounts([*resources, *interrupted])
    return State(
        resources=len(resources),
        protected=tuple(_name(resource) for resource in resources if resource.get("protect")),
        owns_cluster=bool(names),
        buckets=_retained(resources, _BUCKETS),
        registries=_retained(resources, _REGISTRIES),
        objects=frozenset(objects),
        teams=frozenset(teams),
        clusters=names,
        identities=tuple(dict.fromkeys(clusters([*resources, *interrupted]))),
        accounts=tuple(
            dict.fromkeys([*known_accounts, *(cluster.account for cluster in deleted.identities)])
        ),
        deleted=deleted,
        pending=tuple(_name(resource) for resource in interrupted),
        reservations=tuple(_requested(resources)),
        first_up=min(_times(resources, _STASH, "output"), default=None),
        expires=_expiry(deployment, resources),
        labelled=min(_labelled(resources), default=None),
    )


def _requested(resources: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, datetime]]:
    """Yield names and ends of the reservations in calendar mode."""
    for resource in resources:
        inputs = part(resource, "inputs")
        if resource["type"] == FUTURE_RESERVATION and inputs.get("reservationMode") == "CALENDAR":
            name, (_, end) = read_period(Inputs(inputs))
            yield name, end


def _retained(resources: Sequence[Mapping[str, Any]], types: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the resources of these types that remain after a destroy."""
    return tuple(
        _cloud_name(resource)
        for resource in resources
        if resource["type"] in types and resource.get("retainOnDelete")
    )


def _times(resources: Sequence[Mapping[str, Any]], types: str, output: str) -> list[datetime]:
    """Return the times in an output of the resources whose URN ends with these types."""
    times = (
        expiry.parsed(text(resource, "outputs", output))
        for resource in resources
        if str(resource["urn"]).rpartition("::")[0].endswith(types)
    )
    return [time for time in times if time is not None]


def _expiry(deployment: Mapping[str, Any], resources: Sequence[Mapping[str, Any]]) -> datetime | None:
    """Return the expiry, from the stack's output if a destroy has deleted the component."""
    times = _times(resources, expiry.COMPONENT, expiry.OUTPUT)
    return max(times or _times(parts(deployment, "resources"), STACK_TYPE, expiry.OUTPUT), default=None)


def _labelled(resources: Sequence[Mapping[str, Any]]) -> Iterator[datetime]:
    """Yield the expiries in the labels and tags of the stack's own resources."""
    for resource in resources:
        if not resource.get("external") and not resource.get("delete"):
            for path in _LABELS:
                time = expiry.of_label(text(resource, "inputs", *path, expiry.LABEL))
                if time is not None:
                    yield time


def _name(resource: Mapping[str, Any]) -> str:
    return urn_name(str(resource["urn"]))


def _cloud_name(resource: Mapping[str, Any]) -> str:
    """Return a resource's name in the cloud."""
    return text(resource, "outputs", "name") or text(resource, "id") or _name(resource)


def _object(resource: Mapping[str, Any]) -> tuple[ObjectReference, bool] | None:
    """Return a resource's Kubernetes object, and whether the stack owns only some of its fields."""
    match = _KUBERNETES.match(resource["type"])
    metadata = part(resource, "outputs", "metadata")
    if match is None or not metadata:
        return None
    item = ObjectReference(match["kind"], text(metadata, "namespace"), text(metadata, "name"))
    return item, bool(match["patch"])


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """A cluster that a stack created.

    Attributes:
        id: id in the cloud.
        pools: on Google Cloud the sizes of its node pools, those with a minimum above zero first.
    """

    cloud: CloudKind
    id: str
    name: str
    pools: tuple[NodePoolSize, ...]


def own_cluster(stack: str, deployment: Mapping[str, Any]) -> OwnCluster:
    """Return the cluster of a stack, with the sizes of its node pools at the last `up`.

    Nothing else has to be stored while the cluster sleeps.

    Args:
        deployment: the `deployment` of `pulumi stack export`.

    Raises:
        OperationError: the stack has no cluster of its own, or several.
    """
    resources: list[Mapping[str, Any]] = deployment.get("resources") or []
    clusters = [item for item in resources if item["type"] in CLUSTERS and not item.get("external")]
    if not clusters:
        raise OperationError(
            f"Stack {stack} has no cluster of its own. Ebbtide never stops an existing cluster, which may "
            "have other users."
        )
    if len(clusters) > 1:
        raise OperationError(f"Stack {stack} has {len(clusters)} clusters; sleep and wake need one.")
    (cluster,) = clusters
    sizes = [
        _size_of(item)
        for item in resources
        if item["type"] == NODE_POOL and str(item.get("id")).startswith(f"{cluster['id']}/")
    ]
    return OwnCluster(
        CLUSTERS[cluster["type"]],
        str(cluster["id"]),
        text(cluster, "outputs", "name") or str(cluster["id"]).rpartition("/")[2],
        tuple(sorted(sizes, key=lambda size: size.count == 0)),
    )


def _size_of(pool: Mapping[str, Any]) -> NodePoolSize:
    """Return the size of a running pool: its fixed count, or the autoscaler's minimum. GKE counts nodes per
    zone, except in total limits.
    """
    inputs = part(pool, "inputs")
    # Without the bridge's list of defaulted properties.
    autoscaling = {
        key: value for key, value in part(inputs, "autoscaling").items() if not key.startswith("__")
    }
    name = str(pool["id"]).rpartition("/")[2]
    if not autoscaling:
        return NodePoolSize(name, {}, int(inputs.get("nodeCount") or inputs.get("initialNodeCount") or 0))
    zones = len(words(pool, "outputs", "nodeLocations")) or 1
    total = int(autoscaling.get("totalMinNodeCount") or 0)
    return NodePoolSize(name, autoscaling, max(-(-total // zones), int(autoscaling.get("minNodeCount") or 0)))
