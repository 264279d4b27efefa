"""Promises of every add-on that is a kustomization: placement, versions, credentials, and a destroy."""

import pytest

from components.addons.patches import (
    SKIP_AWAIT,
    Object,
    containers,
    has_pods,
    is_deleted_with_cluster,
    name_of,
    pod_spec,
)
from ebbtide.placement.profile import SAFE_TO_EVICT
from tests.manifests import HOME, assert_valid
from tests.unit.components.addons.patched import KUSTOMIZED, Kustomized, floating

pytestmark = [
    pytest.mark.usefixtures("minimal_and_released"),
    pytest.mark.parametrize("addon", KUSTOMIZED.values(), ids=KUSTOMIZED),
]


def _of_kind(addon: Kustomized, kind: str) -> dict[str, Object]:
    """The objects of a kind, by name."""
    return {name_of(item): item for key, item in addon.objects().items() if key.startswith(f"{kind}/")}


def test_every_pod_is_at_home(addon: Kustomized) -> None:
    """Each pod is led to the system pool past its taints, requests something, and may be moved."""
    workloads = list(filter(has_pods, addon.objects().values()))
    assert workloads
    for item in workloads:
        assert pod_spec(item)["nodeSelector"]["ebbtide.dev/pool"] == "system"
        assert all(taint in pod_spec(item)["tolerations"] for taint in HOME.tolerations)
        assert item["spec"]["template"]["metadata"]["annotations"][SAFE_TO_EVICT] == "true"
        for container in containers(item):
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}


def test_every_image_has_a_version(addon: Kustomized) -> None:
    """No image is a branch's or the latest, those that steps and suggestions are started with among them."""
    assert floating(addon.objects()) == {}


@pytest.mark.parametrize("version", ["1.31", "1.34"])
def test_what_is_patched_is_valid(addon: Kustomized, version: str) -> None:
    """Every object of a kind that Kubernetes has is one that it takes."""
    for key, item in addon.objects().items():
        if not key.startswith("CustomResourceDefinition/"):
            assert_valid(item, version)


def test_no_published_credential_is_left(addon: Kustomized) -> None:
    """Upstream's passwords stand nowhere, none is no longer let in, and each Secret holds ours alone."""
    manifests, secrets = addon.objects(), _of_kind(addon, "Secret")
    assert {name: item["data"] for name, item in secrets.items() if "data" in item} == addon.credentials
    assert not [name for name, item in secrets.items() if "stringData" in item]
    assert not [text for text in addon.published if text in repr(manifests)]


def test_claims(addon: Kustomized) -> None:
    """Each claim is deleted, without waiting for pods that its namespace ends."""
    claims = _of_kind(addon, "PersistentVolumeClaim")
    assert set(claims) == set(addon.claims)
    for item in claims.values():
        assert not is_deleted_with_cluster(item)
        assert item["metadata"]["annotations"][SKIP_AWAIT] == "true"
        assert item["metadata"]["namespace"] == addon.namespace


def test_who_mounts_them(addon: Kustomized) -> None:
    """Only one pod mounts a claim, and it is in the namespace whose deletion is awaited, so that it ends
    first."""
    mounted = {
        volume["persistentVolumeClaim"]["claimName"]: name_of(item)
        for item in addon.objects().values()
        for volume in pod_spec(item).get("volumes", ())
        if "persistentVolumeClaim" in volume
        and item["metadata"]["namespace"] == addon.namespace
        and item["spec"].get("replicas", 1) == 1
    }
    assert mounted == addon.claims


def test_services(addon: Kustomized) -> None:
    """No service has a load balancer, so that each may end with the cluster."""
    services = _of_kind(addon, "Service")
    assert set(services) == addon.services
    for item in services.values():
        assert item["spec"].get("type", "ClusterIP") == "ClusterIP"
        assert is_deleted_with_cluster(item)


def test_namespaces(addon: Kustomized) -> None:
    """The namespace of the claims has a deletion of its own, which is awaited, whatever else is in it."""
    namespaces = _of_kind(addon, "Namespace")
    assert list(namespaces) == [addon.namespace]
    assert not is_deleted_with_cluster(namespaces[addon.namespace])
    assert SKIP_AWAIT not in namespaces[addon.namespace]["metadata"].get("annotations", {})


def test_no_two_make_one_object(addon: Kustomized) -> None:
    """Pipelines and Katib can be there together: no object is both's."""
    for other in KUSTOMIZED.values():
        if other is not addon:
            own, others = (
                {(key, item["metadata"].get("namespace")) for key, item in each.objects().items()}
                for each in (addon, other)
            )
            assert not own & others
