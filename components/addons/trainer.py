"""Kubeflow Trainer, for distributed training."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import helm
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.catalog import PINS

from . import network_policies
from .chart_order import post_renderer
from .home import Home
from .leaves import leaf
from .manifest import Manifest
from .patches import for_readers
from .patching import applied
from .pod_security import system_namespace
from .trainer_objects import PATCHES, RUNTIME_PATCHES, values

NAMESPACE = "kubeflow-system"
RELEASE = "kubeflow-trainer"

_CHART = "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"
_RUNTIMES = "github.com/kubeflow/trainer/manifests/overlays/runtimes"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerArgs:
    """Arguments of Trainer.

    Attributes:
        home: the placement of its controllers.
        readers: subjects that may read its version, which its SDK requests.
        deleted_with: the cluster, if its deletion deletes the objects.
    """

    home: Home
    readers: tuple[dict[str, str], ...] = ()
    deleted_with: pulumi.Resource | None = None


class Trainer(pulumi.ComponentResource):
    """Trainer and JobSet from Trainer's chart, and the runtimes from its kustomization.

    The runtimes come after the controllers and go before them: one that a job uses is held by a finalizer
    until the controller lets it go. Tenants' namespaces wait for `ready` for the same reason. It holds no
    volume; what its jobs claim is in their namespaces. Sources: kubeflow/trainer 2.3.0, charts and
    manifests/overlays/runtimes.
    """

    ready: tuple[pulumi.Resource, ...]
    """Prerequisites of a TrainJob, of a namespace with any, and of Kueue, which may otherwise miss the
    kind."""

    def __init__(self, name: str, args: TrainerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Trainer", name, {}, opts)
        version = PINS["trainer"].version
        namespace = Manifest(
            f"{name}-namespace", system_namespace(NAMESPACE, "restricted"), leaf(self, args.deleted_with)
        )
        for policy in network_policies.trainer(NAMESPACE):
            role = f"{name}-policy-{policy['metadata']['name']}"
            Manifest(role, policy, leaf(self, args.deleted_with, [namespace]))
        chart = helm.v4.Chart(
            f"{name}-chart",
            chart=_CHART,
            version=version,
            name=RELEASE,
            namespace=NAMESPACE,
            post_renderer=post_renderer(),
            values=values(args.home),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[namespace],
                transforms=[applied((*PATCHES, for_readers(args.readers)), args.deleted_with)],
            ),
        )
        runtimes = kustomize.Directory(
            f"{name}-runtimes",
            directory=f"{_RUNTIMES}?ref=v{version}",
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[chart], transforms=[applied(RUNTIME_PATCHES, args.deleted_with)]
            ),
        )
        self.ready = (chart, runtimes)
        self.register_outputs({})
