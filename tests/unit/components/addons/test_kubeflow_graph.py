"""Pipelines, Katib and Trainer as resources: what is asked for, from where, and in which order."""

from collections.abc import Callable
from typing import Any, Literal

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from components.addons.add_on import AddOnArgs, ArtifactStore
from components.addons.katib import Katib
from components.addons.pipeline_retries import retry_strategy
from components.addons.pipelines import WORKERS, Pipelines
from components.addons.trainer import Trainer
from components.gke.artifacts import ArtifactBucket, ArtifactBucketArgs
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog.versions import PINS
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


def test_pipelines_come_from_a_pinned_release() -> None:
    """Both kustomizations name one release, the kinds first."""
    recording = pipelines()
    commit = PINS["pipelines"].commit
    source = "github.com/kubeflow/pipelines/manifests/kustomize"
    assert [item.inputs["directory"] for item in recording.of_type(DIRECTORY)] == [
        f"{source}/cluster-scoped-resources?ref={commit}",
        f"{source}/env/platform-agnostic?ref={commit}",
    ]


@pytest.mark.parametrize("retry", ["disruptions", "any"])
def test_the_retry_strategy_can_be_seen(retry: Literal["disruptions", "any"]) -> None:
    """The component has the controller's retry settings, which a preview shows."""
    component = recorded(lambda first, opts: Pipelines("kfp", args(first, retry=retry), opts)).named("kfp")
    assert component.inputs == {"retryStrategy": retry_strategy(retry), "artifacts": "cluster"}


def test_pipelines_are_made_in_order() -> None:
    """The kinds wait for what was asked, and the objects for the kinds."""
    recording = pipelines()
    kinds, objects = recording.of_type(DIRECTORY)
    assert recording.named("first").urn in kinds.dependencies
    assert kinds.urn in objects.dependencies


def test_nothing_around_the_leaves_goes_with_the_cluster() -> None:
    """A chart or a directory would hand it on to its claims."""
    for recording in (pipelines(), katib(), trainer()):
        around = [item for item in recording if not item.custom or item.type in (DIRECTORY, CHART)]
        assert around
        assert all(item.deleted_with is None for item in around)


def test_katib_comes_from_a_pinned_release() -> None:
    """One kustomization, that waits for what was asked."""
    recording = katib()
    (objects,) = recording.of_type(DIRECTORY)
    assert objects.inputs["directory"] == (
        f"github.com/kubeflow/katib/manifests/v1beta1/installs/katib-standalone?ref={PINS['katib'].commit}"
    )
    assert recording.named("first").urn in objects.dependencies


def test_trainer_comes_from_a_pinned_release() -> None:
    """The chart and the runtimes name one release, and the runtimes wait for the chart."""
    recording = trainer()
    version = PINS["trainer"].version
    (chart,) = recording.of_type(CHART)
    assert chart.inputs["chart"] == "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"
    assert chart.inputs["version"] == version
    assert chart.inputs["namespace"] == "kubeflow-system"
    (runtimes,) = recording.of_type(DIRECTORY)
    assert runtimes.inputs["directory"] == (
        f"github.com/kubeflow/trainer/manifests/overlays/runtimes?ref={PINS['trainer'].commit}"
    )
    assert chart.urn in runtimes.dependencies
    namespace = recording.named("trainer-namespace")
    assert namespace.urn in chart.dependencies
    assert namespace.deleted_with == recording.named("first").urn


def test_a_bucket_is_private_and_takes_no_key() -> None:
    """Only the stack's account, which the service accounts impersonate, has access to the bucket."""
    recording = bucket(force_destroy=True)
    made: Any = recording.named("artifacts-bucket").inputs
    assert made["name"] == "acme-ml-train-pipelines"
    assert made["location"] == "us-central1"
    assert made["uniformBucketLevelAccess"] is True
    assert made["publicAccessPrevention"] == "enforced"
    assert made["labels"] == {"ebbtide-owner": "vision-team"}
    assert recording.named("artifacts-use").inputs["role"] == "roles/storage.objectUser"
    members = [item.inputs["member"] for item in recording.of_type("gcp:serviceaccount/iAMMember:IAMMember")]
    assert members == [f"serviceAccount:acme-ml.svc.id.goog[kubeflow/{name}]" for name in WORKERS]


def test_a_bucket_outlives_what_is_permanent() -> None:
    """Only an ephemeral cluster takes what is in it along."""
    for goes in (True, False):
        made = bucket(force_destroy=goes).named("artifacts-bucket")
        assert made.inputs["forceDestroy"] is goes


def test_a_bucket_comes_before_what_uses_it() -> None:
    """Objects that are annotated with its identity wait for all of it."""
    bucket_args = ArtifactBucketArgs(
        cluster="train", project="acme-ml", region="us-central1", accounts=(), force_destroy=True
    )

    def make(first: pulumi.Resource, opts: pulumi.ResourceOptions) -> None:
        bucket = ArtifactBucket("artifacts", bucket_args, opts)
        Pipelines("kfp", args(first, bucket.store, artifacts="bucket"), opts)

    recording = recorded(make)
    objects = recording.of_type(DIRECTORY)[1]
    assert recording.named("artifacts-use").urn in objects.dependencies
