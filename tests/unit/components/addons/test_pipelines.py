"""Kubeflow Pipelines' real objects, after our patches."""

from typing import Any

import pytest

from components.addons.patches import Object, containers, pod_spec
from components.addons.pipelines import CACHE, DATABASE_SECRET, WORKERS, cluster_patches, patches
from ebbtide.declaration.model.addons import Pipelines
from tests.manifests import HOME, PIPELINES, PIPELINES_CLUSTER, after, upstream
from tests.unit.components.addons.patched import KUSTOMIZED, floating

pytestmark = pytest.mark.usefixtures("minimal_and_released")

CREDENTIALS = KUSTOMIZED["pipelines"].credentials
objects = KUSTOMIZED["pipelines"].objects


def variables(item: Object) -> dict[str, Object]:
    """Environment of an object's containers, by name."""
    return {entry["name"]: entry for container in containers(item) for entry in container.get("env", ())}


def test_the_database_asks_for_its_password() -> None:
    """Server and clients read one Secret, and an empty password is no longer let in."""
    manifests = objects()
    server = variables(manifests["Deployment/mysql"])
    assert "MYSQL_ALLOW_EMPTY_PASSWORD" not in server
    assert server["MYSQL_ROOT_PASSWORD"]["valueFrom"]["secretKeyRef"] == {
        "name": DATABASE_SECRET,
        "key": "password",
    }
    clients = {
        key
        for key, item in manifests.items()
        for name, entry in variables(item).items()
        if "PASSWORD" in name
        and entry.get("valueFrom", {}).get("secretKeyRef", {}).get("name") == DATABASE_SECRET
    }
    assert clients == {
        "Deployment/cache-server",
        "Deployment/metadata-grpc-deployment",
        "Deployment/ml-pipeline",
        "Deployment/mysql",
    }


def test_every_key_of_a_secret_that_is_read_is_there() -> None:
    """Whatever reads a Secret finds its key in what we put there."""
    read = {
        (reference["name"], reference["key"])
        for item in objects().values()
        for entry in variables(item).values()
        if (reference := entry.get("valueFrom", {}).get("secretKeyRef"))
    }
    assert read == {(name, key) for name, data in CREDENTIALS.items() for key in data}


def test_the_cache_of_version_1_is_left_out() -> None:
    """The cache server of version 1, which creates a webhook configuration, does not run."""
    replicas = {
        key: item["spec"].get("replicas", 1) for key, item in objects().items() if key.startswith("Dep")
    }
    assert {key for key, count in replicas.items() if count == 0} == {f"Deployment/{name}" for name in CACHE}
    assert len(replicas) > len(CACHE)


def test_accounts_of_what_does_not_run_have_no_rights() -> None:
    """A step could create a pod as any account of its namespace, such as the cache's."""
    manifests = objects()
    unused = {pod_spec(manifests[f"Deployment/{name}"])["serviceAccountName"] for name in CACHE}
    subjects = {key: item["subjects"] for key, item in manifests.items() if "subjects" in item}
    assert [] in subjects.values()
    assert not unused & {subject["name"] for bound in subjects.values() for subject in bound}


def test_what_is_published_floats_in_one_place() -> None:
    """Upstream names one image without a version, which only the cache reads."""
    assert floating(after(upstream(PIPELINES), ())) == {
        "ConfigMap/pipeline-install-config": ["ghcr.io/containerd/busybox"]
    }


def test_artifacts_go_where_they_are_sent() -> None:
    """A root reaches the launcher and an identity its service accounts, and neither is there otherwise."""
    bucket: Any = {
        "artifact_root": "gs://acme/v2/artifacts",
        "identity": {"iam.gke.io/gcp-service-account": "a@b"},
    }
    sent = after(upstream(PIPELINES), patches(Pipelines(), HOME, CREDENTIALS, **bucket))
    assert sent["ConfigMap/kfp-launcher"]["data"] == {"defaultPipelineRoot": "gs://acme/v2/artifacts"}
    annotated = {key for key, item in sent.items() if "a@b" in repr(item["metadata"])}
    assert annotated == {f"ServiceAccount/{name}" for name in WORKERS}
    kept = objects()
    assert kept["ConfigMap/kfp-launcher"]["data"] == {"defaultPipelineRoot": ""}
    assert not any("iam.gke.io" in repr(item["metadata"]) for item in kept.values())


def test_the_namespace_has_its_labels() -> None:
    """The namespace has the labels that policies select."""
    manifests = after(upstream(PIPELINES_CLUSTER), cluster_patches({"covered": "true"}))
    assert manifests["Namespace/kubeflow"]["metadata"]["labels"]["covered"] == "true"
    assert [key for key in manifests if "covered" in repr(manifests[key])] == ["Namespace/kubeflow"]
