"""Katib, for hyperparameter tuning."""

import pulumi
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.declaration.model import Katib as Declared
from ebbtide.values.remote_inputs import remote_inputs

from .add_on import AddOnArgs, AddOnComponent
from .credentials import generated
from .deletion import leaf_options
from .katib_objects import DATABASE_SECRET, network_policies, patches, trials_policy
from .manifest import Manifest
from .system_placement import system_placement
from .transforms import patch_transform

_SOURCE = "github.com/kubeflow/katib/manifests/v1beta1/installs/katib-standalone"


class Katib(AddOnComponent):
    """Katib from its standalone kustomization, patched: in a separate namespace, with a generated password,
    narrower roles and resource requests, on the system pool; and the admission policy of trials.

    Namespaces for experiments depend on `ready`, and so are deleted before Katib: a finalizer holds an
    experiment until the controller has counted it. The database's claim of 10 GiB is deleted with the
    namespace, which gets its own deletion. Sources: kubeflow/katib 0.19.0, manifests/v1beta1 and
    pkg/controller.v1beta1/experiment.

    In Pulumi, its objects keep the names `kubeflow/…`, after upstream's namespace: another name would change
    their URNs, and so replace them (docs/decisions/0010).
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        credentials = {DATABASE_SECRET: {"MYSQL_ROOT_PASSWORD": generated()}}
        release = (args.declaration.addons.katib or Declared()).release
        directory = f"{_SOURCE}?ref={release.commit}"
        manifest_patches = patches(system_placement(args.declaration), credentials)
        before = args.depends_on
        for manifest in trials_policy():
            role = f"{name}-{manifest['kind'].lower()}"
            before = (*before, Manifest(role, manifest, leaf_options(self, args.deleted_with, before)))
        objects = kustomize.Directory(
            f"{name}-objects",
            directory=directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=before,
                transforms=[patch_transform(manifest_patches, args.deleted_with, tuple(credentials))],
            ),
        )
        self._network_policies(args, network_policies(), objects)
        self.ready = (objects,)
        self.register_outputs(remote_inputs({"directory": directory}))
