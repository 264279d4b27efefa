"""A Kubeflow Trainer that Kueue cannot resume TrainJobs of, on the real API server with the real Kueue."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta

import pytest
import yaml
from rich.console import Console

from components.addons import teams
from components.addons.kueue import NAMESPACE, values
from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.values import clock
from ebbtide.work.evidence import read_evidence
from ebbtide.work.progress import cause_of
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.progress import narration
from rehearsal.tests.control_plane.cluster import Object, wait
from rehearsal.tests.control_plane.commands import Kubectl, rendered
from rehearsal.tests.control_plane.kueue import create_queues, install, with_visibility_port
from tests.declarations import GKE, changed

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
NAME = "trainjobs.trainer.kubeflow.org"
CONTAINER = {"name": "node", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
RUNTIME: Object = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "plain", "labels": {"trainer.kubeflow.org/framework": "plain"}},
    "spec": {
        "mlPolicy": {"numNodes": 1},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {
                                "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
                            },
                            "spec": {"template": {"spec": {"containers": [CONTAINER]}}},
                        },
                    }
                ]
            }
        },
    },
}


@pytest.fixture(scope="module")
def declaration() -> Cluster:
    """A cluster with Trainer, and a queue."""
    queues = [{"name": "cpus", "pools": ["cpu"]}]
    return declare(changed(GKE, queues=queues, teams=[{"name": "vision"}], addons={"trainer": {}}))


@pytest.fixture(scope="module")
def definitions() -> dict[str, Object]:
    """The CRDs of Trainer and JobSet, by name."""
    with narration(Console(stderr=True)) as say:
        found = ensure(["trainer-manifests", "trainer-chart"], on_step=say)
    files = [
        file
        for name in ("trainer-manifests", "trainer-chart")
        for file in found.path(name).rglob("crds/*.yaml")
    ]
    items = [item for file in files for item in yaml.safe_load_all(file.read_text()) if item]
    groups = ("trainer.kubeflow.org", "jobset.x-k8s.io")
    crds = [item for item in items if item["kind"] == "CustomResourceDefinition"]
    return {item["metadata"]["name"]: item for item in crds if item["spec"]["group"] in groups}


@pytest.fixture(scope="module")
def api(
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    declaration: Cluster,
    definitions: dict[str, Object],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    """A cluster with Kueue and the CRDs of a Trainer without `runtimePatches`, as 2.1 is."""
    settings = ControlPlaneSettings(name="old", cloud="gke", open_ports=frozenset({443, 10250}))
    chart = rendered(chart_tools, values(declaration), NAMESPACE, tmp_path_factory.mktemp("chart"))
    with ControlPlane.start(tmp_path_factory.mktemp("old"), tools, settings) as started:
        for name, item in definitions.items():
            started.api.apply(f"{CRDS}/{name}", _without_patches(item))
        kubectl = Kubectl(tools, started)
        install(started, kubectl, with_visibility_port(chart), declaration)
        (team,) = declaration.teams
        kubectl.apply([teams.namespace_manifest(declaration, team)])
        create_queues(kubectl, declaration)
        kubectl.apply([RUNTIME])
        yield started.api


def _without_patches(definition: Object) -> Object:
    older = deepcopy(definition)
    if older["metadata"]["name"] == NAME:
        for version in older["spec"]["versions"]:
            del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["runtimePatches"]
    return older


def _submit(api: Api, name: str) -> None:
    body = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    metadata = {"name": name, "labels": {QUEUE_LABEL: "cpus"}}
    spec = {"runtimeRef": {"name": "plain"}, "trainer": {"numNodes": 1}}
    api.create(f"{TRAINER}/namespaces/vision/trainjobs", {**body, "metadata": metadata, "spec": spec})
    workloads = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision/workloads"
    wait(
        lambda: [item for item in api.items(workloads) if name in item["metadata"]["name"]],
        lambda items: any(condition(item, "Admitted") for item in items),
    )


def test_versions_that_do_not_work_together(api: Api) -> None:
    """A TrainJob stays suspended after its admission, since its CRD lacks the field that Kueue writes."""
    _submit(api, "stuck")
    cause = cause_of(read_evidence(api, "stuck", "vision", clock.now() + timedelta(minutes=2)))
    assert cause is not None
    assert cause.reason == "IncompatibleVersions"
    assert "the installed Trainer has no `spec.runtimePatches`" in cause.message
    assert api.get(f"{TRAINER}/namespaces/vision/trainjobs/stuck")["spec"]["suspend"] is True
