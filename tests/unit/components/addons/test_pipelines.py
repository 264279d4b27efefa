"""Kubeflow Pipelines' real objects, after our patches."""

from typing import Any

import pytest

from components.addons.patches import Object, containers, has_pods, pod_spec
from components.addons.pipelines import (
    CACHE,
    DATABASE_SECRET,
    STORE_SECRET,
    WORKERS,
    cluster_patches,
    patches,
)
from ebbtide.declaration.model.addons import Pipelines
from ebbtide.placement.profile import SAFE_TO_EVICT
from tests.manifests import HOME, PIPELINES, PIPELINES_CLUSTER, after, assert_valid, upstream
from tests.unit.components.addons.images import floating

pytestmark = pytest.mark.usefixtures("minimal_and_released")

CREDENTIALS = {
    STORE_SECRET: {"accesskey": "b3Vycw==", "secretkey": "b3Vycw=="},
    DATABASE_SECRET: {"username": "cm9vdA==", "password": "b3Vycw=="},
}
_BUILT_IN = ("v1", "apps/v1", "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1")


def objects(**bucket: Any) -> dict[str, Object]:
    """The patched objects."""
    return after(upstream(PIPELINES), patches(Pipelines(), HOME, CREDENTIALS, **bucket))


def variables(item: Object) -> dict[str, Object]:
    """Environment of an object's containers, by name."""
    return {entry["name"]: entry for container in containers(item) for entry in container.get("env", ())}


def test_every_pod_is_at_home() -> None:
    """Each pod is led to the system pool, requests something, and may be moved."""
    for item in filter(has_pods, objects().values()):
        assert pod_spec(item)["nodeSelector"]["ebbtide.dev/pool"] == "system"
        assert all(taint in pod_spec(item)["tolerations"] for taint in HOME.tolerations)
        assert item["spec"]["template"]["metadata"]["annotations"][SAFE_TO_EVICT] == "true"
        for container in containers(item):
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}


def test_no_published_credential_is_left() -> None:
    """Upstream's passwords stand nowhere, and each Secret holds ours alone."""
    manifests = objects()
    for name, data in CREDENTIALS.items():
        assert manifests[f"Secret/{name}"]["data"] == data
        assert "stringData" not in manifests[f"Secret/{name}"]
    assert [key for key in manifests if key.startswith("Secret/")] == [
        f"Secret/{name}" for name in CREDENTIALS
    ]
    assert "minio123" not in repr(manifests)
    assert "bWluaW8xMjM=" not in repr(manifests)


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
    manifests = {**after(upstream(PIPELINES_CLUSTER), cluster_patches({})), **objects()}
    unused = {pod_spec(manifests[f"Deployment/{name}"])["serviceAccountName"] for name in CACHE}
    subjects = {key: item["subjects"] for key, item in manifests.items() if "subjects" in item}
    assert [] in subjects.values()
    assert not unused & {subject["name"] for bound in subjects.values() for subject in bound}


def test_every_image_has_a_version() -> None:
    """No image is a branch's or the latest, those that steps are started with among them."""
    images_by_object = {key: floating(item) for key, item in objects().items()}
    assert {key: images for key, images in images_by_object.items() if images} == {}


def test_what_is_published_floats_in_one_place() -> None:
    """Upstream names one image without a version, which only the cache reads."""
    images_by_object = {key: floating(item) for key, item in after(upstream(PIPELINES), ()).items()}
    assert {key: images for key, images in images_by_object.items() if images} == {
        "ConfigMap/pipeline-install-config": ["ghcr.io/containerd/busybox"]
    }


def test_artifacts_go_where_they_are_sent() -> None:
    """A root reaches the launcher and an identity its service accounts, and neither is there otherwise."""
    sent = objects(artifact_root="gs://acme/v2/artifacts", identity={"iam.gke.io/gcp-service-account": "a@b"})
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


@pytest.mark.parametrize("version", ["1.31", "1.34"])
def test_what_is_patched_is_valid(version: str) -> None:
    """Every object of a kind that Kubernetes has is one that it takes."""
    for item in objects().values():
        assert item["apiVersion"] in _BUILT_IN
        assert_valid(item, version)
