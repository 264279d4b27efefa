"""Kubeflow Pipelines."""

import pulumi
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.catalog import PINS
from ebbtide.model import Pipelines as Declared
from ebbtide.model.tenants import tenants_of

from .add_on import AddOnArgs, AddOnComponent
from .credentials import encoded, generated
from .home import home
from .members import readers
from .patches import for_readers
from .patching import applied
from .pipelines_objects import (
    DATABASE_SECRET,
    NAMESPACE,
    STORE_SECRET,
    cluster_patches,
    network_policies,
    patches,
)
from .retry import retry_strategy
from .team_objects import namespace_labels

_SOURCE = "github.com/kubeflow/pipelines/manifests/kustomize"


def kustomization(path: str) -> str:
    """Address of a kustomization of the pinned release."""
    return f"{_SOURCE}/{path}?ref={PINS['pipelines'].version}"


class Pipelines(AddOnComponent):
    """Kubeflow Pipelines from its own kustomizations, patched: retries of steps that lost their node, no
    published password, requests everywhere, the system pool, and no cache of version 1.

    Two directories, the kinds and the namespace first: the second is made of them, and on the way down goes
    before them. Two claims of 20 GiB hold the database and the artifact store; they go with the namespace,
    which is deleted for real and waited for, also when the cluster goes, and their pods before them. Making
    the objects needs git and the way to GitHub: upstream's kustomizations name Argo's there.

    It depends on Kueue, whose webhooks see every Deployment of a labelled namespace, and on Katib, whose
    experiments a pipeline may start in this namespace, so that on a cluster that stays they are deleted
    before the controller that has to let them go. The namespace is a tenant's like any other, but made here,
    since it comes with the kustomization.

    Local queues, roles and whatever else is put into the namespace wait for `namespace`; what calls the API
    waits for `ready`. Sources: kubeflow/pipelines 2.17.0, manifests/kustomize; pulumi-kubernetes 4.34,
    kustomize/v2.
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        declared = args.declaration.addons.pipelines or Declared()
        # A preview does not show the transforms: the component's inputs show their settings.
        inputs = {"retryStrategy": retry_strategy(declared.retry), "artifacts": declared.artifacts}
        super().__init__(name, opts, inputs)
        store, tenants = args.artifacts, tenants_of(args.declaration)
        tenant = next(team for team in tenants if team.namespace_name == NAMESPACE)
        labels = namespace_labels(args.declaration, tenant)
        kinds = kustomize.Directory(
            f"{name}-cluster",
            directory=kustomization("cluster-scoped-resources"),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.depends_on,
                transforms=[applied(cluster_patches(labels), args.deleted_with)],
            ),
        )
        credentials = {
            STORE_SECRET: {"accesskey": generated(), "secretkey": generated()},
            DATABASE_SECRET: {"username": encoded("root"), "password": generated()},
        }
        wanted = (
            *patches(
                declared,
                home(args.declaration),
                credentials,
                store.root if store else None,
                store.identity if store else None,
            ),
            for_readers(readers(args.declaration)),
        )
        objects = kustomize.Directory(
            f"{name}-objects",
            directory=kustomization("env/platform-agnostic"),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[kinds, *(store.grants if store else ())],
                transforms=[applied(wanted, args.deleted_with, tuple(credentials))],
            ),
        )
        self._network_policies(network_policies(), kinds, args.deleted_with)
        self.namespace = (kinds,)
        self.ready = (objects,)
        self.register_outputs({})
