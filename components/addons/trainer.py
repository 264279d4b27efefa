"""Kubeflow Trainer, for distributed training."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core, helm
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.catalog import PINS

from .home import Home
from .leaves import leaf
from .patching import applied
from .trainer_objects import PATCHES, values

NAMESPACE = "kubeflow-system"
RELEASE = "kubeflow-trainer"

_CHART = "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"
_RUNTIMES = "github.com/kubeflow/trainer/manifests/overlays/runtimes"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerArgs:
    """What Trainer is made from.

    Attributes:
        home: where its controllers run.
        dies_with: the cluster, where its end is the objects' end, too.
    """

    home: Home
    dies_with: pulumi.Resource | None = None


class Trainer(pulumi.ComponentResource):
    """Trainer and JobSet from Trainer's chart, and the runtimes from its kustomization.

    The runtimes come after the controllers and go before them: one that a job uses is held by a finalizer
    until the controller lets it go. Tenants' namespaces wait for `ready` for the same reason. It holds no
    volume; what its jobs claim is in their namespaces. Sources: kubeflow/trainer 2.3.0, charts and
    manifests/overlays/runtimes.
    """

    ready: tuple[pulumi.Resource, ...]
    """What has to be there before a training job, before a namespace that holds any, and before Kueue, which
    otherwise may not get to know of training jobs."""

    def __init__(self, name: str, args: TrainerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Trainer", name, {}, opts)
        version = PINS["trainer"].version
        namespace = core.v1.Namespace(
            f"{name}-namespace",
            metadata={"name": NAMESPACE},
            opts=leaf(self, args.dies_with),
        )
        chart = helm.v4.Chart(
            f"{name}-chart",
            chart=_CHART,
            version=version,
            name=RELEASE,
            namespace=NAMESPACE,
            values=values(args.home),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[namespace],
                transforms=[applied(PATCHES, args.dies_with)],
            ),
        )
        runtimes = kustomize.Directory(
            f"{name}-runtimes",
            directory=f"{_RUNTIMES}?ref=v{version}",
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[chart], transforms=[applied((), args.dies_with)]
            ),
        )
        self.ready = (chart, runtimes)
        self.register_outputs({})
