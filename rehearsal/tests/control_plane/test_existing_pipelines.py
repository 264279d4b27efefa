"""The patch of an existing Kubeflow Pipelines, applied to a real API server and given back as Pulumi does."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from components.addons.pipeline_retries import (
    PATCHED_IMAGE,
    VARIABLE,
    patchable_image,
    patched_spec,
    spec_patch,
)
from ebbtide.clients.kubernetes import APPLY, Api, ApiError
from ebbtide_rehearsal.cloud.existing import seed_pipelines
from ebbtide_rehearsal.cloud.provider import BEHIND, CLUSTER
from ebbtide_rehearsal.cloud.store import Resource, Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.stage import inventory
from tests.declarations import GKE, changed, only
from tests.running import manifest
from tests.synth import synth

pytestmark = pytest.mark.rehearsal

DEPLOYMENT = "/apis/apps/v1/namespaces/kubeflow/deployments/ml-pipeline"
MANAGER = "pulumi-kubernetes-1a2b3c4d"


def _patch(existing: dict[str, Any], retry: Literal["disruptions", "any"] = "disruptions") -> dict[str, Any]:
    """The patch that the program gives to the provider for an existing Deployment."""
    declaration = only(GKE, machine="n2-standard-8")
    cloud = {**GKE["cloud"], "existing": {"name": "theirs"}}
    pipelines = {"existing": True, "retry": retry}
    declaration = changed(
        declaration, cloud=cloud, pools=declaration["pools"][1:], addons={"pipelines": pipelines}
    )
    (resource,) = synth(declaration).of_type("kubernetes:apps/v1:DeploymentPatch")
    patch = manifest(resource)
    # Not known without a cluster.
    patch["metadata"]["annotations"][PATCHED_IMAGE] = patchable_image(existing["spec"])
    return {**patch, "spec": patched_spec(existing["spec"], spec_patch(retry))}


def _value(deployment: dict[str, Any]) -> str | None:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (variable,) = [item for item in container["env"] if item["name"] == VARIABLE]
    return variable.get("value")


def _spec(deployment: dict[str, Any]) -> dict[str, Any]:
    """The pod template without our variable."""
    template = json.loads(json.dumps(deployment["spec"]["template"]))
    for container in template["spec"]["containers"]:
        container["env"] = [item for item in container["env"] if item["name"] != VARIABLE]
    return template


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Api:
    """A cluster with Kubeflow Pipelines as kubectl has installed it."""
    store = Store(Path(tmp_path_factory.mktemp("cloud")) / "cloud.sqlite")
    store.put(Resource(BEHIND, "theirs", CLUSTER, state={"kubeconfig": str(control_plane.plan.kubeconfig)}))
    seed_pipelines(store, "theirs")
    return control_plane.api


def test_the_patch_is_applied_and_given_back(api: Api) -> None:
    """Only our variable changes, although kubectl owns the rest; on destroy it is empty, and the rest is
    unchanged."""
    before, objects = api.get(DEPLOYMENT), inventory(api)
    assert patchable_image(before["spec"]) == "ghcr.io/kubeflow/kfp-api-server:2.17.0"
    with pytest.raises(ApiError, match="conflict"):
        api.patch(DEPLOYMENT, _patch(before), APPLY, fieldManager=MANAGER)
    patched = api.patch(DEPLOYMENT, _patch(before), APPLY, fieldManager=MANAGER, force="true")
    assert _value(patched) == spec_patch("disruptions")
    assert _spec(patched) == _spec(before)
    assert patchable_image(patched["spec"])
    again = api.patch(DEPLOYMENT, _patch(patched, "any"), APPLY, fieldManager=MANAGER, force="true")
    assert _value(again) == spec_patch("any")
    bare = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ml-pipeline", "namespace": "kubeflow"},
    }
    left = api.patch(DEPLOYMENT, bare, APPLY, fieldManager=MANAGER)
    assert not _value(left)
    assert _spec(left) == _spec(before)
    assert PATCHED_IMAGE not in left["metadata"].get("annotations", {})
    assert patchable_image(left["spec"])
    assert inventory(api) == objects
