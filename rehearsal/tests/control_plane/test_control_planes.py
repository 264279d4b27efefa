"""Several control planes, who may enter them, and how they end."""

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide_rehearsal.cloud.control_planes import ControlPlanes
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.cluster import namespace

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]


@pytest.fixture(scope="module")
def second(tools: ControlPlaneTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Another control plane, of the other cloud, with members."""
    settings = ControlPlaneSettings(name="second", cloud="aks", members={"ada@acme.example": ["vision"]})
    with ControlPlane.start(tmp_path_factory.mktemp("second"), tools, settings) as started:
        yield started


def test_two_at_once_know_nothing_of_each_other(control_plane: ControlPlane, second: ControlPlane) -> None:
    """Each has its own objects, its own cloud's storage classes, and refuses the other's administrator."""
    namespace(second.api, "only-here")
    assert control_plane.api.find("/api/v1/namespaces/only-here") is None
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    names = [
        {item["metadata"]["name"] for item in plane.api.items(classes)} for plane in (control_plane, second)
    ]
    assert "standard-rwo" in names[0]
    assert "managed-csi" in names[1]
    authority = str(control_plane.plan.certificates.authority)
    stranger = Api.of_token(control_plane.server, authority, second.plan.identities.admin.token)
    with pytest.raises(ApiError, match="Unauthorized"):
        stranger.get("/api/v1/namespaces")
    stranger.close()


def test_two_clusters_of_a_cloud_have_one_user(tools: ControlPlaneTools, tmp_path: Path) -> None:
    """Each cluster accepts the token of the credential plugins after another one was created."""
    trusted = tmp_path / "trusted.crt"
    trusted.touch()

    def no_controllers(*_: object) -> Callable[[object], None]:
        return lambda _: None

    planes = ControlPlanes(tmp_path, trusted, tools, Store(tmp_path / "store"), no_controllers)
    try:
        planes.create("first", "gke")
        planes.create("second", "aks")
        for name in ("first", "second"):
            plugin = subprocess.run(
                [tmp_path / "bin/gke-gcloud-auth-plugin"], capture_output=True, check=True
            )
            token = json.loads(plugin.stdout)["status"]["token"]
            authority = tmp_path / "authority.crt"
            authority.write_bytes(base64.b64decode(planes.endpoint(name).certificate_authority))
            api = Api.of_token(f"https://{planes.endpoint(name).host}", str(authority), token)
            assert api.items("/api/v1/namespaces")
            api.close()
    finally:
        planes.stop()


def test_a_cluster_made_again_is_empty(tools: ControlPlaneTools, tmp_path: Path) -> None:
    """A new control plane in a used directory has none of the earlier objects."""
    settings = ControlPlaneSettings(name="again", cloud="gke")
    with ControlPlane.start(tmp_path, tools, settings) as first:
        namespace(first.api, "before")
    with ControlPlane.start(tmp_path, tools, settings) as again:
        assert again.api.find("/api/v1/namespaces/before") is None
