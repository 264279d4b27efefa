"""Katib, for hyperparameter tuning."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.catalog import PINS

from . import network_policies
from .credentials import generated
from .home import Home
from .katib_objects import DATABASE_SECRET, NAMESPACE, patches
from .leaves import leaf
from .manifest import Manifest
from .patching import applied

_SOURCE = "github.com/kubeflow/katib/manifests/v1beta1/installs/katib-standalone"


@dataclass(frozen=True, slots=True, kw_only=True)
class KatibArgs:
    """Arguments of Katib.

    Attributes:
        home: the placement of its controller.
        depends_on: Kueue, if it is installed.
        deleted_with: the cluster, if its deletion deletes the objects.
    """

    home: Home
    depends_on: tuple[pulumi.Resource, ...] = ()
    deleted_with: pulumi.Resource | None = None


class Katib(pulumi.ComponentResource):
    """Katib from its standalone kustomization, patched: in a namespace of its own, with a password of its
    own, with requests, on the system pool.

    Namespaces that experiments run in wait for `ready`, and so go before it: an experiment is held by a
    finalizer until the controller has counted it. They carry the label `INJECTED`. The claim of 10 GiB for
    the database goes with the namespace, which is deleted for real. Sources: kubeflow/katib 0.19.0,
    manifests/v1beta1 and pkg/controller.v1beta1/experiment.

    In Pulumi its objects keep the names `kubeflow/…`, after upstream's namespace: another name would be
    another URN, and replace them (docs/decisions/0010).
    """

    namespace_name: str
    ready: tuple[pulumi.Resource, ...]
    """Prerequisites of an experiment, and of a namespace with any."""

    def __init__(self, name: str, args: KatibArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Katib", name, {}, opts)
        credentials = {DATABASE_SECRET: {"MYSQL_ROOT_PASSWORD": generated()}}
        objects = kustomize.Directory(
            f"{name}-objects",
            directory=f"{_SOURCE}?ref=v{PINS['katib'].version}",
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.depends_on,
                transforms=[applied(patches(args.home, credentials), args.deleted_with, tuple(credentials))],
            ),
        )
        for policy in network_policies.katib(NAMESPACE):
            role = f"{name}-policy-{policy['metadata']['name']}"
            Manifest(role, policy, leaf(self, args.deleted_with, [objects]))
        self.namespace_name = NAMESPACE
        self.ready = (objects,)
        self.register_outputs({})
