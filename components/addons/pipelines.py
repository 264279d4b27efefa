"""Kubeflow Pipelines."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.catalog import PINS
from ebbtide.model import Pipelines as Declared

from . import network_policies
from .artifact_store import ArtifactStore
from .credentials import encoded, generated
from .home import Home
from .leaves import leaf
from .manifest import Manifest
from .patches import for_readers
from .patching import applied
from .pipelines_objects import DATABASE_SECRET, NAMESPACE, STORE_SECRET, cluster_patches, patches
from .retry import retry_strategy

_SOURCE = "github.com/kubeflow/pipelines/manifests/kustomize"


def kustomization(path: str) -> str:
    """Address of a kustomization of the pinned release."""
    return f"{_SOURCE}/{path}?ref={PINS['pipelines'].version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinesArgs:
    """Arguments of Kubeflow Pipelines.

    Attributes:
        declared: the declared add-on.
        home: the placement of its controllers.
        readers: subjects that may read its public settings.
        namespace_labels: labels of its namespace, by which Kueue covers it, or Katib. Its namespace is a
            tenant's like any other, but made here, since it comes with the kustomization.
        store: the store of artifacts; None for one in the cluster.
        depends_on: resources that are created first: Kueue, if installed, whose webhooks see every Deployment
            of a labelled namespace; Katib, whose experiments a pipeline may start in this namespace, so that
            on a cluster that stays they go before the controller that has to let them.
        deleted_with: the cluster, if its deletion deletes the objects.
    """

    declared: Declared
    home: Home
    readers: tuple[dict[str, str], ...] = ()
    namespace_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    store: ArtifactStore | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()
    deleted_with: pulumi.Resource | None = None


class Pipelines(pulumi.ComponentResource):
    """Kubeflow Pipelines from its own kustomizations, patched: retries of steps that lost their node, no
    published password, requests everywhere, the system pool, and no cache of version 1.

    Two directories, the kinds and the namespace first: the second is made of them, and on the way down goes
    before them. Two claims of 20 GiB hold the database and the artifact store; they go with the namespace,
    which is deleted for real and waited for, also when the cluster goes, and their pods before them. Making
    the objects needs git and the way to GitHub: upstream's kustomizations name Argo's there.

    Local queues, roles and whatever else is put into the namespace wait for `namespace`; what calls the API
    waits for `ready`. Sources: kubeflow/pipelines 2.17.0, manifests/kustomize; pulumi-kubernetes 4.34,
    kustomize/v2.
    """

    namespace_name: str
    namespace: tuple[pulumi.Resource, ...]
    """Prerequisites of any object in its namespace."""
    ready: tuple[pulumi.Resource, ...]
    """Prerequisites of a pipeline run."""

    def __init__(self, name: str, args: PipelinesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # A preview does not show the transforms: the component's inputs show their settings.
        inputs = {"retryStrategy": retry_strategy(args.declared.retry), "artifacts": args.declared.artifacts}
        super().__init__("ebbtide:addons:Pipelines", name, inputs, opts)
        kinds = kustomize.Directory(
            f"{name}-cluster",
            directory=kustomization("cluster-scoped-resources"),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.depends_on,
                transforms=[applied(cluster_patches(args.namespace_labels), args.deleted_with)],
            ),
        )
        credentials = {
            STORE_SECRET: {"accesskey": generated(), "secretkey": generated()},
            DATABASE_SECRET: {"username": encoded("root"), "password": generated()},
        }
        wanted = (
            *patches(
                args.declared,
                args.home,
                credentials,
                args.store.root if args.store else None,
                args.store.identity if args.store else None,
            ),
            for_readers(args.readers),
        )
        objects = kustomize.Directory(
            f"{name}-objects",
            directory=kustomization("env/platform-agnostic"),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[kinds, *(args.store.grants if args.store else ())],
                transforms=[applied(wanted, args.deleted_with, tuple(credentials))],
            ),
        )
        for policy in network_policies.pipelines(NAMESPACE):
            role = f"{name}-policy-{policy['metadata']['name']}"
            Manifest(role, policy, leaf(self, args.deleted_with, [kinds]))
        self.namespace_name = NAMESPACE
        self.namespace = (kinds,)
        self.ready = (objects,)
        self.register_outputs({})
