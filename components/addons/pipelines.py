"""Kubeflow Pipelines."""

import pulumi
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.declaration.catalog import Pin
from ebbtide.declaration.model import Pipelines as Declared
from ebbtide.values.remote_inputs import remote_inputs

from .add_on import AddOnArgs, AddOnComponent
from .credentials import encoded, generated
from .members import readers
from .patches import for_readers
from .pipelines_objects import (
    DATABASE_SECRET,
    NAMESPACE,
    STORE_SECRET,
    cluster_patches,
    network_policies,
    patches,
)
from .retry import retry_strategy
from .system_placement import system_placement
from .team_objects import namespace_labels
from .transforms import patch_transform

_SOURCE = "github.com/kubeflow/pipelines/manifests/kustomize"


def kustomization(path: str, release: Pin) -> str:
    """Return the URL of a kustomization of a release."""
    return f"{_SOURCE}/{path}?ref={release.commit}"


class Pipelines(AddOnComponent):
    """Kubeflow Pipelines from its own kustomizations, patched: retries of steps that lost their node, no
    published password, requests for all containers, the system pool, and no cache of version 1.

    Two directories: the second uses the kinds and the namespace of the first, and is deleted before it. Two
    claims of 20 GiB store the database and the artifacts; they are deleted with the namespace, after their
    pods. The namespace always gets its own deletion, which is awaited, even when the cluster is deleted.
    Creation needs git and access to GitHub: upstream's kustomizations refer to Argo's there.

    It depends on Kueue, whose webhooks intercept every Deployment of a labelled namespace, and on Katib,
    whose experiments a pipeline may start in this namespace: on an existing cluster, they are deleted before
    the controller that removes their finalizer. The namespace is an ordinary tenant's, but created here,
    since the kustomization contains it.

    Objects in the namespace, such as local queues and roles, depend on `namespace`; clients of the API depend
    on `ready`. Sources: kubeflow/pipelines 2.17.0, manifests/kustomize; pulumi-kubernetes 4.34, kustomize/v2.
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        declared = args.declaration.addons.pipelines or Declared()
        # A preview does not show the transforms, so the component's inputs show their settings.
        inputs = {"retryStrategy": retry_strategy(declared.retry), "artifacts": declared.artifacts}
        super().__init__(name, opts, inputs)
        store, tenants = args.artifacts, args.declaration.tenants
        tenant = next(team for team in tenants if team.namespace_name == NAMESPACE)
        labels = namespace_labels(args.declaration, tenant)
        kinds_directory = kustomization("cluster-scoped-resources", declared.release)
        directory = kustomization("env/platform-agnostic", declared.release)
        kinds = kustomize.Directory(
            f"{name}-cluster",
            directory=kinds_directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.depends_on,
                transforms=[patch_transform(cluster_patches(labels), args.deleted_with)],
            ),
        )
        credentials = {
            STORE_SECRET: {"accesskey": generated(), "secretkey": generated()},
            DATABASE_SECRET: {"username": encoded("root"), "password": generated()},
        }
        manifest_patches = (
            *patches(
                declared,
                system_placement(args.declaration),
                credentials,
                store.root if store else None,
                store.identity if store else None,
            ),
            for_readers(readers(args.declaration)),
        )
        objects = kustomize.Directory(
            f"{name}-objects",
            directory=directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[kinds, *(store.grants if store else ())],
                transforms=[patch_transform(manifest_patches, args.deleted_with, tuple(credentials))],
            ),
        )
        self._network_policies(args, network_policies(), kinds)
        self.namespace = (kinds,)
        self.ready = (objects,)
        self.register_outputs(remote_inputs({"directory": kinds_directory}, {"directory": directory}))
