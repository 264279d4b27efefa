"""Steps that mount volumes and use buckets."""

from dataclasses import replace
from typing import Any

import pytest
from kfp import dsl

from ebbtide.placement import Profile
from ebbtide.work.errors import WorkloadError
from ebbtide.work.jobs import job
from ebbtide.work.pipelines import use_identity, use_pool, use_queue, use_volume
from tests.examples.workloads import compiled
from tests.unit.workloads.clusters import PROFILES

GKE = PROFILES["examples/research-cluster/Pulumi.research-cluster.yaml"]
AKS = PROFILES["examples/aks-spot/Pulumi.aks-spot.yaml"]


@dsl.component(base_image="python:3.12")
def work() -> None:
    """Do nothing."""


def _settings(profile: Profile, **volume: Any) -> dict[str, Any]:
    """The Kubernetes settings of a step that mounts a volume and uses its identity."""

    @dsl.pipeline
    def pipeline() -> None:
        use_identity(use_volume(work(), **volume, profile=profile), profile=profile)

    _, settings = compiled(pipeline)
    return settings["exec-work"]


def test_a_bucket_is_mounted_on_gke_as_in_a_job() -> None:
    """The pod has the annotation without which the mount is never ready, and needs no label."""
    settings = _settings(GKE)
    (mounted,) = settings["pvcMount"]
    assert (mounted["constant"], mounted["mountPath"]) == ("shared", "/checkpoints")
    created = job(GKE, name="work", image="busybox", pool="gpu", gpus=1, volume="shared")
    assert settings["podMetadata"] == created["spec"]["template"]["metadata"]


def test_a_volume_is_mounted_on_aks() -> None:
    """Nothing runs beside the step there; its pod gets a token of its identity."""
    settings = _settings(AKS, volume="data", mount_path="/data")
    (mounted,) = settings["pvcMount"]
    assert (mounted["constant"], mounted["mountPath"]) == ("data", "/data")
    assert settings["podMetadata"] == {"labels": {"azure.workload.identity/use": "true"}}


def test_a_job_on_aks_gets_a_token_of_its_identity() -> None:
    """Pods with a service account get its label; on GKE none need it."""
    fields: Any = {"name": "work", "image": "busybox", "service_account": "worker"}
    metadata = job(AKS, pool="spotnodepool", **fields)["spec"]["template"]["metadata"]
    assert metadata == {"labels": {"azure.workload.identity/use": "true"}}
    assert "metadata" not in job(GKE, pool="gpu", gpus=1, **fields)["spec"]["template"]


def _room(profile: Profile, *, mounts: bool, cloud: str = "gke") -> None:
    """Place a step that needs all of a node's CPU."""
    pool = profile.pool("gpu")
    cluster = replace(profile, cloud=cloud)

    @dsl.pipeline
    def pipeline() -> None:
        task = use_volume(work(), profile=cluster) if mounts else work()
        use_pool(task, pool, gpus=1, cpu=f"{pool.cpu_m}m")

    compiled(pipeline)


def test_what_the_mount_takes_of_a_node_is_counted() -> None:
    """A step that just fits its node does not fit beside a bucket mount, as a Job would not."""
    _room(GKE, mounts=False)
    _room(GKE, mounts=True, cloud="aks")
    with pytest.raises(WorkloadError, match="beside the bucket mount"):
        _room(GKE, mounts=True)


def test_what_the_mount_takes_is_counted_in_a_queue() -> None:
    """The queue's pools are held against the step with its mount."""
    profile = PROFILES["examples/queued-gpus/Pulumi.queued-gpus.yaml"]
    pool = profile.pool("dws-t4-nodepool")
    needs: Any = {"gpus": 1, "cpu": f"{pool.cpu_m}m", "memory": "1Gi", "namespace": "default"}
    only = replace(profile, queues=(replace(profile.queues[0], pools=(pool.name,)),))

    def pipeline() -> None:
        use_queue(use_volume(work(), profile=only), "dws", profile=only, **needs)

    with pytest.raises(WorkloadError, match="beside the bucket mount"):
        dsl.pipeline(pipeline)


def test_faults_are_reported_together() -> None:
    """Each with what to write."""

    def pipeline() -> None:
        task = use_pool(work(), "gpu", profile=GKE, gpus=1)
        use_volume(task, "Not a name", "relative", profile=GKE)

    with pytest.raises(WorkloadError) as caught:
        dsl.pipeline(pipeline)
    message = str(caught.value)
    assert "is not a valid name of a PersistentVolumeClaim" in message
    assert "absolute path" in message
    assert "call use_volume before it is placed" in message


def test_a_pipeline_has_no_volume() -> None:
    """A pipeline has no volume; its steps do."""

    @dsl.pipeline
    def inner() -> None:
        work()

    def volume() -> None:
        use_volume(inner(), profile=AKS)

    def identity() -> None:
        use_identity(inner(), profile=AKS)

    for outer in (volume, identity):
        with pytest.raises(WorkloadError, match="has no pod"):
            dsl.pipeline(outer)
