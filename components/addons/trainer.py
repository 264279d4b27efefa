"""Kubeflow Trainer, for distributed training."""

from typing import Any

import pulumi
from pulumi_kubernetes import helm
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.declaration.model import Trainer as Declared
from ebbtide.values.remote_inputs import remote_inputs

from .add_on import AddOnArgs, AddOnComponent
from .members import readers
from .patches import for_readers, on_system_pool
from .post_renderer import post_renderer
from .system_placement import system_placement
from .trainer_objects import NAMESPACE, PATCHES, RUNTIME_PATCHES, network_policies, values
from .transforms import patch_transform

RELEASE = "kubeflow-trainer"

_CHART = "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"
_RUNTIMES = "github.com/kubeflow/trainer/manifests/overlays/runtimes"


class Trainer(AddOnComponent):
    """Trainer and JobSet from Trainer's chart, and the runtimes from its kustomization.

    The runtimes are created after the controllers and deleted before them: a finalizer holds a runtime that a
    job uses until the controller removes it. Tenants' namespaces depend on `ready` for the same reason. It
    has no volume; its jobs' claims are in their namespaces. Sources: kubeflow/trainer 2.3.0, charts and
    manifests/overlays/runtimes.
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        declared, placement = (
            args.declaration.addons.trainer or Declared(),
            system_placement(args.declaration),
        )
        release = declared.release
        namespace = self._system_namespace(NAMESPACE, args.deleted_with)
        self._network_policies(args, network_policies(), namespace)
        inputs: dict[str, Any] = {
            "chart": _CHART,
            "version": release.version,
            "name": RELEASE,
            "namespace": NAMESPACE,
            "values": values(placement, declared),
        }
        directory = f"{_RUNTIMES}?ref={release.commit}"
        chart = helm.v4.Chart(
            f"{name}-chart",
            **inputs,
            post_renderer=post_renderer(),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[namespace, *args.depends_on],
                transforms=[
                    patch_transform(
                        (*PATCHES, on_system_pool(placement), for_readers(readers(args.declaration))),
                        args.deleted_with,
                    )
                ],
            ),
        )
        runtimes = kustomize.Directory(
            f"{name}-runtimes",
            directory=directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[chart],
                transforms=[patch_transform(RUNTIME_PATCHES, args.deleted_with)],
            ),
        )
        self.ready = (chart, runtimes)
        self.register_outputs(remote_inputs(inputs, {"directory": directory}))
