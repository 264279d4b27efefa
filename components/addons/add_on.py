"""Base classes of the add-ons' components."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from ebbtide.declaration.model import Cluster

from .deletion import leaf_options
from .manifest import Manifest
from .network_policies import egress_policies
from .pod_security import system_namespace


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


Ready = tuple[pulumi.Resource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOnArgs:
    """Arguments of an add-on.

    Attributes:
        declaration: the whole declaration.
        artifacts: the store of pipelines' artifacts; None if they are stored in the cluster.
        depends_on: the add-ons that are installed before it and, on an existing cluster, deleted after it.
        deleted_with: the cluster, if its deletion deletes the objects.
    """

    declaration: Cluster
    artifacts: ArtifactStore | None = None
    depends_on: Ready = ()
    deleted_with: pulumi.Resource | None = None


class AddOnComponent(pulumi.ComponentResource):
    """An installed add-on.

    The class, its module and its type are named after the declared add-on (`AddOnSpec`).
    """

    namespace: Ready = ()
    """Prerequisites of any object in its namespace, if workloads run there."""
    ready: Ready
    """Prerequisites of its kinds, and of namespaces with workloads of those kinds."""

    def __init__(
        self, name: str, opts: pulumi.ResourceOptions | None, inputs: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"ebbtide:addons:{type(self).__name__}", name, dict(inputs or {}), opts)

    def _system_namespace(
        self, namespace: str, deleted_with: pulumi.Resource | None, depends_on: Ready = ()
    ) -> pulumi.Resource:
        """Create a namespace that no team uses."""
        manifest = system_namespace(namespace, "restricted")
        options = leaf_options(self, deleted_with, depends_on)
        return Manifest(f"{self.pulumi_resource_name}-namespace", manifest, options)

    def _network_policies(
        self, args: AddOnArgs, policies: Sequence[Mapping[str, Any]], namespace: pulumi.Resource
    ) -> None:
        """Create the network policies of a namespace once it exists."""
        name = policies[0]["metadata"]["namespace"]
        for policy in (*policies, *egress_policies(args.declaration.site.cloud, name)):
            role = f"{self.pulumi_resource_name}-policy-{policy['metadata']['name']}"
            Manifest(role, policy, leaf_options(self, args.deleted_with, [namespace]))
