"""Base of the add-ons: component class and arguments, placement and priority of controllers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from ebbtide.declaration.catalog.clouds import POOL_LABEL
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.labels_and_taints import MODE, SYSTEM_ONLY
from ebbtide.placement.derive import toleration
from ebbtide.placement.member_policy import controllers_priority
from ebbtide.values.cloud_kind import CloudKind

from .manifest import InCluster
from .security import egress_policies, system_namespace

Ready = tuple[pulumi.Resource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactStore:
    """A bucket for pipelines' artifacts.

    Attributes:
        root: where artifacts are stored, as `gs://bucket/artifacts`.
        identity: annotations with which Kubernetes service accounts act as a cloud identity.
        grants: prerequisites of a step.
    """

    root: pulumi.Input[str]
    identity: Mapping[str, pulumi.Input[str]]
    grants: tuple[pulumi.Resource, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOnArgs:
    """Arguments of an add-on.

    Attributes:
        artifacts: the store of pipelines' artifacts; None if they are stored in the cluster.
        depends_on: the add-ons that are installed before it and, on an existing cluster, deleted after it.
        deleted_with: the cluster, if its deletion deletes the objects.
    """

    declaration: Cluster
    artifacts: ArtifactStore | None = None
    depends_on: Ready = ()
    deleted_with: pulumi.Resource | None = None


class AddOnComponent(InCluster):
    """An installed add-on.

    The class, its module and its type are named after the declared add-on (`AddOnSpec`).
    """

    namespace: Ready = ()
    """Prerequisites of any object in its namespace, if workloads run there."""
    ready: Ready
    """Prerequisites of its kinds, and of namespaces with workloads of those kinds."""

    def __init__(
        self,
        name: str,
        args: AddOnArgs,
        opts: pulumi.ResourceOptions | None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"ebbtide:addons:{type(self).__name__}", name, opts, args.deleted_with, inputs)
        self._cloud = args.declaration.site.cloud

    def _system_namespace(self, namespace: str, depends_on: Ready = ()) -> pulumi.Resource:
        """Create a namespace that no team uses."""
        manifest = system_namespace(namespace, "restricted")
        return self._create(f"{self.pulumi_resource_name}-namespace", manifest, depends_on)

    def _network_policies(self, policies: Sequence[Mapping[str, Any]], namespace: pulumi.Resource) -> None:
        """Create the network policies of a namespace once it exists."""
        name = policies[0]["metadata"]["namespace"]
        for policy in (*policies, *egress_policies(self._cloud, name)):
            role = f"{self.pulumi_resource_name}-policy-{policy['metadata']['name']}"
            self._create(role, policy, [namespace])


@dataclass(frozen=True, slots=True)
class SystemPlacement:
    """Fields of a pod spec that place a pod on the system pool.

    Attributes:
        node_selector: labels of the pool's nodes; empty if unknown.
        tolerations: one for each taint of the pool's nodes.
        priority_class: name of the controllers' priority class.
    """

    node_selector: dict[str, str]
    tolerations: list[dict[str, Any]]
    priority_class: str


def system_placement(declaration: Cluster) -> SystemPlacement:
    """Return the placement on the system pool of a complete declaration.

    For an existing cluster whose system pool is not declared: on AKS, the nodes with AKS's label of system
    pools; on GKE, any untainted node, since Ebbtide taints every work pool.
    """
    pool, priority = declaration.system_pool, controllers_priority(declaration)
    if pool is not None:
        derived = pool.labels_and_taints
        return SystemPlacement(
            {POOL_LABEL: derived.all_labels[POOL_LABEL]},
            [dict(toleration(taint).manifest()) for taint in derived.all_taints],
            priority,
        )
    match declaration.site.cloud:
        case CloudKind.GKE:
            return SystemPlacement({}, [], priority)
        case CloudKind.AKS:
            return SystemPlacement({MODE: "system"}, [dict(toleration(SYSTEM_ONLY).manifest())], priority)
