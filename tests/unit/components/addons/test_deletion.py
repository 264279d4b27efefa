"""Every claim and every service of the kustomizations, by name, and how it goes on a destroy."""

from collections.abc import Sequence

import pytest

from components.addons import katib, pipelines
from components.addons.patches import SKIP_AWAIT, Object, Patch, is_deleted_with_cluster, name_of, pod_spec
from ebbtide.declaration.model.addons import Pipelines
from tests.manifests import HOME, KATIB, PIPELINES, PIPELINES_CLUSTER, after, upstream

pytestmark = pytest.mark.usefixtures("minimal_and_released")

PIPELINES_PATCHES = (
    *pipelines.cluster_patches({}),
    *pipelines.patches(Pipelines(), HOME, {}),
)

ADDONS: dict[str, tuple[tuple[str, ...], Sequence[Patch], dict[str, str], set[str], str]] = {
    "pipelines": (
        (PIPELINES_CLUSTER, PIPELINES),
        PIPELINES_PATCHES,
        {"mysql-pv-claim": "mysql", "seaweedfs-pvc": "seaweedfs"},
        {
            *("cache-server", "metadata-envoy-service", "metadata-grpc-service", "ml-pipeline", "mysql"),
            *("ml-pipeline-ui", "ml-pipeline-visualizationserver", "seaweedfs"),
        },
        "kubeflow",
    ),
    "katib": (
        (KATIB,),
        katib.patches(HOME, {}),
        {"katib-mysql": "katib-mysql"},
        {"katib-controller", "katib-db-manager", "katib-mysql", "katib-ui"},
        "katib",
    ),
}


def made(addon: str) -> dict[str, Object]:
    """An add-on's objects, as they are made."""
    files, patches, *_ = ADDONS[addon]
    return {key: item for name in files for key, item in after(upstream(name), patches).items()}


def of_kind(objects: dict[str, Object], kind: str) -> dict[str, Object]:
    """The objects of a kind, by name."""
    return {name_of(item): item for key, item in objects.items() if key.startswith(f"{kind}/")}


@pytest.mark.parametrize("addon", ADDONS)
def test_claims(addon: str) -> None:
    """Each claim is deleted, without waiting for pods that its namespace ends."""
    *_, claims, _, namespace = ADDONS[addon]
    volume_claims = of_kind(made(addon), "PersistentVolumeClaim")
    assert set(volume_claims) == set(claims)
    for item in volume_claims.values():
        assert not is_deleted_with_cluster(item)
        assert item["metadata"]["annotations"][SKIP_AWAIT] == "true"
        assert item["metadata"]["namespace"] == namespace


@pytest.mark.parametrize("addon", ADDONS)
def test_who_mounts_them(addon: str) -> None:
    """Only one pod mounts a claim, and it stands in the namespace that is deleted for real, so that it ends
    first."""
    *_, claims, _, namespace = ADDONS[addon]
    mounted = {
        volume["persistentVolumeClaim"]["claimName"]: name_of(item)
        for item in made(addon).values()
        for volume in pod_spec(item).get("volumes", ())
        if "persistentVolumeClaim" in volume
        and item["metadata"]["namespace"] == namespace
        and item["spec"].get("replicas", 1) == 1
    }
    assert mounted == claims


@pytest.mark.parametrize("addon", ADDONS)
def test_services(addon: str) -> None:
    """No service has a load balancer, so that each may end with the cluster."""
    *_, services, _ = ADDONS[addon]
    objects = of_kind(made(addon), "Service")
    assert set(objects) == services
    for item in objects.values():
        assert item["spec"].get("type", "ClusterIP") == "ClusterIP"
        assert is_deleted_with_cluster(item)


@pytest.mark.parametrize("addon", ADDONS)
def test_namespaces(addon: str) -> None:
    """The namespace around the claims is deleted for real and waited for, whoever else is in it."""
    *_, namespace = ADDONS[addon]
    namespaces = of_kind(made(addon), "Namespace")
    assert list(namespaces) == [namespace]
    assert not is_deleted_with_cluster(namespaces[namespace])
    assert SKIP_AWAIT not in namespaces[namespace]["metadata"].get("annotations", {})


def test_no_two_make_one_object() -> None:
    """Pipelines and Katib can be there together: no object is both's."""
    first, second = (
        {(key, item["metadata"].get("namespace")) for key, item in made(addon).items()} for addon in ADDONS
    )
    assert not first & second
