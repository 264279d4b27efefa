"""A stack's resources, from the engine's state."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ebbtide.kubernetes_api.parts import part, text

_CLUSTERS: Final = frozenset(
    {"gcp:container/cluster:Cluster", "azure-native:containerservice:ManagedCluster"}
)
_BUCKETS: Final = frozenset({"gcp:storage/bucket:Bucket", "azure-native:storage:StorageAccount"})
_REGISTRIES: Final = frozenset(
    {"gcp:artifactregistry/repository:Repository", "azure-native:containerregistry:Registry"}
)
_KUBERNETES: Final = re.compile(r"^kubernetes:[^:]+:(?P<kind>\w+?)(?P<patch>Patch)?$")
_TENANT: Final = "ebbtide:addons:Tenant$"
"""The parent type in the URN of every resource in a team's namespace."""


@dataclass(frozen=True, slots=True)
class Item:
    """A Kubernetes object: its kind and location."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class State:
    """The resources of a stack.

    Attributes:
        resources: the number of resources that a destroy removes, including components.
        protected: names of the resources that the engine refuses to remove.
        owns_cluster: true if the stack created the cluster.
        buckets: buckets that remain with their contents.
        registries: container registries that remain with their images.
        objects: the Kubernetes objects that the stack created.
        teams: namespaces with resources for a team.
    """

    resources: int
    protected: tuple[str, ...]
    owns_cluster: bool
    buckets: tuple[str, ...]
    registries: tuple[str, ...]
    objects: frozenset[Item]
    teams: frozenset[str]

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces that the stack created."""
        return frozenset(item.name for item in self.objects if item.kind == "Namespace")


def read(deployment: Mapping[str, Any]) -> State:
    """Parse the output of `pulumi stack export`.

    Args:
        deployment: its `deployment`.
    """
    resources: list[Mapping[str, Any]] = [
        resource
        for resource in deployment.get("resources") or ()
        if resource["type"] != "pulumi:pulumi:Stack"
    ]
    objects: set[Item] = set()
    teams: set[str] = set()
    for resource in resources:
        kubernetes = _object(resource)
        if kubernetes is None:
            continue
        item, patch = kubernetes
        if not patch:
            objects.add(item)
        if _TENANT in resource["urn"] and (
            namespace := item.name if item.kind == "Namespace" else item.namespace
        ):
            teams.add(namespace)
    return State(
        resources=len(resources),
        protected=tuple(_name(resource) for resource in resources if resource.get("protect")),
        owns_cluster=any(
            resource["type"] in _CLUSTERS and not resource.get("external") for resource in resources
        ),
        buckets=_retained(resources, _BUCKETS),
        registries=_retained(resources, _REGISTRIES),
        objects=frozenset(objects),
        teams=frozenset(teams),
    )


def _retained(resources: Sequence[Mapping[str, Any]], types: frozenset[str]) -> tuple[str, ...]:
    """Return the names of those types' resources that remain after a destroy."""
    return tuple(
        _cloud_name(resource)
        for resource in resources
        if resource["type"] in types and resource.get("retainOnDelete")
    )


def _name(resource: Mapping[str, Any]) -> str:
    return str(resource["urn"]).rpartition("::")[2]


def _cloud_name(resource: Mapping[str, Any]) -> str:
    """Return a resource's name in the cloud."""
    return text(resource, "outputs", "name") or text(resource, "id") or _name(resource)


def _object(resource: Mapping[str, Any]) -> tuple[Item, bool] | None:
    """Return a resource's Kubernetes object, and if the stack owns only some of its fields."""
    match = _KUBERNETES.match(resource["type"])
    metadata = part(resource, "outputs", "metadata")
    if match is None or not metadata:
        return None
    item = Item(match["kind"], text(metadata, "namespace"), text(metadata, "name"))
    return item, bool(match["patch"])
