"""Unused GPUs, read by `ebbtide status` from the fake clouds' managed Prometheus."""

from collections.abc import Generator
from pathlib import Path

import promql_parser
import pytest

from ebbtide.analysis.metrics import MetricSources
from ebbtide.operations.status import UNUSED_HOURS, gpu_status
from ebbtide.operations.status_report import GpuStatus, UnusedGpus
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.rest.access import write_google_login
from ebbtide_rehearsal.cloud.rest.server import planted_sample
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault
from rehearsal.tests.unit.rest_clouds import PROJECT, SUBSCRIPTION, RestClouds, rest_clouds

_WORKSPACE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/train/providers/Microsoft.Monitor/accounts/train-metrics"
)
_STORES = {CloudKind.GKE: PROJECT, CloudKind.AKS: _WORKSPACE}
_OPERATIONS = {
    CloudKind.GKE: "monitoring.projects.location.prometheus.api.v1.query",
    CloudKind.AKS: "Microsoft.Monitor/accounts/data/metrics/read",
}

every_cloud = pytest.mark.parametrize("cloud", CloudKind)


def _sources(cloud: CloudKind, *, gpus: bool = True, store: str = "") -> MetricSources:
    location = {CloudKind.GKE: "us-central1-a", CloudKind.AKS: "eastus"}[cloud]
    return MetricSources(cloud, "train", location, gpus=gpus, store=store or _STORES[cloud])


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[RestClouds]:
    """The fake clouds, with a workspace, and samples of two clusters."""
    with rest_clouds(tmp_path, monkeypatch) as serving:
        serving.azure(_WORKSPACE)
        held = [("train", "vision", "train-0-abcde", gpu) for gpu in "01"]
        for number, (cluster, namespace, pod, gpu) in enumerate([*held, ("other", "nlp", "b-fghij", "0")]):
            labels = {"cluster": cluster, "namespace": namespace, "pod": pod, "Hostname": "n1", "gpu": gpu}
            serving.store.put(planted_sample(number, 0, **labels))
        yield serving


@every_cloud
def test_unused_gpus_are_counted_by_pod(clouds: RestClouds, cloud: CloudKind) -> None:
    """The pods of the stack's cluster are listed, each once, with their unused GPUs."""
    del clouds
    unused = UnusedGpus(namespace="vision", pod="train-0-abcde", node="n1", gpus=2)
    assert gpu_status(_sources(cloud)) == GpuStatus(measured=True, unused=(unused,))


@every_cloud
def test_nothing_is_asked_without_metrics(cloud: CloudKind) -> None:
    """Without `addons.metrics`, or without a measured GPU, no cloud is called."""
    assert gpu_status(None) == gpu_status(_sources(cloud, gpus=False)) == GpuStatus(measured=False)


@every_cloud
def test_a_refusal_is_the_reason(clouds: RestClouds, cloud: CloudKind) -> None:
    """Missing access does not end the command, and the reason says which role is missing."""
    error = {"status": 403, "message": "Permission denied."}
    clouds.store.inject(InjectedFault(API_ERROR, _OPERATIONS[cloud], details=error))
    role = {CloudKind.GKE: "roles/monitoring.viewer", CloudKind.AKS: "Monitoring Data Reader"}[cloud]
    assert role in gpu_status(_sources(cloud)).unknown


def test_missing_credentials_are_the_reason(
    clouds: RestClouds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the login of each cloud."""
    write_google_login(tmp_path / "application_default_credentials.json", clouds.origin, "expired")
    assert "gcloud auth application-default login" in gpu_status(_sources(CloudKind.GKE)).unknown
    monkeypatch.setenv("IDENTITY_HEADER", "wrong")
    assert "az login" in gpu_status(_sources(CloudKind.AKS)).unknown


@pytest.mark.usefixtures("clouds")
def test_a_deleted_workspace_is_the_reason() -> None:
    """The workspace of a stack on AKS may have been deleted by others."""
    assert "was not found" in gpu_status(_sources(CloudKind.AKS, store=_WORKSPACE + "-2")).unknown


@every_cloud
def test_the_query_is_promql(cloud: CloudKind) -> None:
    """Prometheus' grammar accepts the query."""
    promql_parser.parse(_sources(cloud).unused(UNUSED_HOURS))
