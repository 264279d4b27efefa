"""Pipelines, Katib and Trainer as resources: what is asked for, from where, and in which order."""

from collections.abc import Callable

import pulumi
import pulumi_kubernetes as kubernetes

from components.addons.add_on import AddOnArgs, ArtifactStore
from components.addons.katib import Katib
from components.addons.pipelines import WORKERS, Pipelines
from components.addons.trainer import Trainer
from components.gke.teams import ArtifactBucket, ArtifactBucketArgs
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.declare import declare
from tests.declarations import GKE, changed

DIRECTORY = "kubernetes:kustomize/v2:Directory"
CHART = "kubernetes:helm.sh/v4:Chart"


def recorded(make: Callable[[pulumi.Resource, pulumi.ResourceOptions], object]) -> Recording:
    """Record components with a provider and a dependency."""

    def program() -> None:
        provider = kubernetes.Provider("kubernetes", kubeconfig="{}")
        first = kubernetes.core.v1.Namespace("first", opts=pulumi.ResourceOptions(provider=provider))
        make(first, pulumi.ResourceOptions(providers=[provider]))

    return record(program, project="test", stack="test")


def args(first: pulumi.Resource, store: ArtifactStore | None = None, **pipelines: str) -> AddOnArgs:
    """Arguments of add-ons that depend on a resource, and are deleted with it."""
    declaration = declare(changed(GKE, addons={"pipelines": pipelines}))
    return AddOnArgs(declaration=declaration, artifacts=store, depends_on=(first,), deleted_with=first)


def pipelines() -> Recording:
    """Pipelines that depend on a resource."""
    return recorded(lambda first, opts: Pipelines("kfp", args(first), opts))


def katib() -> Recording:
    """Katib that depends on a resource."""
    return recorded(lambda first, opts: Katib("katib", args(first), opts))


def trainer() -> Recording:
    """Trainer that is deleted with a resource."""
    return recorded(lambda first, opts: Trainer("trainer", args(first), opts))


def bucket(*, force_destroy: bool) -> Recording:
    """A bucket for artifacts."""
    bucket_args = ArtifactBucketArgs(
        cluster="train",
        project="acme-ml",
        region="us-central1",
        accounts=tuple(f"kubeflow/{name}" for name in WORKERS),
        force_destroy=force_destroy,
        labels={"ebbtide-owner": "vision-team"},
    )
    return recorded(lambda _, opts: ArtifactBucket("artifacts", bucket_args, opts))


def test_nothing_around_the_leaves_goes_with_the_cluster() -> None:
    """A chart or a directory would hand it on to its claims."""
    for recording in (pipelines(), katib(), trainer()):
        around = [item for item in recording if not item.custom or item.type in (DIRECTORY, CHART)]
        assert around
        assert all(item.deleted_with is None for item in around)
