"""Quotas, read by the clouds' own client libraries from the fake clouds' REST APIs."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import requests

from ebbtide.autoscaler.nodes import NodePool
from ebbtide.clients.clouds.connect import quota_source
from ebbtide.clients.clouds.interfaces import CloudApiError, CredentialsError, QuotaLimit
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.pools import put, register
from ebbtide_rehearsal.cloud.rest.access import write_google_login
from ebbtide_rehearsal.cloud.store import API_ERROR, QUOTA, InjectedFault
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_machine, a_pool
from rehearsal.tests.unit.rest_clouds import PROJECT, SUBSCRIPTION, RestClouds, rest_clouds

_GKE, _AKS = CloudKind.GKE, CloudKind.AKS
_ACCOUNTS = {_GKE: PROJECT, _AKS: SUBSCRIPTION}
_REGIONS = {_GKE: "us-central1", _AKS: "eastus"}
_OPERATIONS = {_GKE: "compute.regions.get", _AKS: "Microsoft.Compute/locations/usages/read"}
_QUOTA_INFO = "cloudquotas.projects.locations.services.quotaInfos.get"


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[RestClouds]:
    """The fake clouds."""
    with rest_clouds(tmp_path, monkeypatch) as serving:
        yield serving


def _no_sleep(_seconds: float) -> None:
    """Retries follow at once."""


def _with_machines(clouds: RestClouds, pool: NodePool, count: int, **state: Any) -> None:
    register(clouds.store, pool)
    for number in range(count):
        put(clouds.store, a_machine(pool, name=f"{pool.name}-{number}", cloud=pool.cloud, **state))


def test_usage_is_counted_from_the_machines_that_exist(clouds: RestClouds) -> None:
    """Machines count with cores, accelerators and disks; machines that wait for stock do not."""
    _with_machines(
        clouds, a_gpu_pool(machine="n1-highmem-8", accelerator=("nvidia-tesla-t4", 4), ssd_gb=50), 2
    )
    _with_machines(
        clouds, a_gpu_pool("far", machine="n1-highmem-8", region="us-east1", capacity="on-demand"), 3
    )
    _with_machines(clouds, a_pool("waiting"), 5, state="waiting")
    clouds.store.inject(InjectedFault(QUOTA, "GPUS_ALL_REGIONS", details={"limit": 16}))
    source = quota_source(_GKE, PROJECT)
    limits = source.limits("us-central1", [])
    assert limits["PREEMPTIBLE_CPUS"].usage == 16
    assert limits["PREEMPTIBLE_NVIDIA_T4_GPUS"].usage == 8
    assert limits["SSD_TOTAL_GB"].usage == 100
    assert limits["N2_CPUS"].usage == limits["NVIDIA_T4_GPUS"].usage == 0
    assert source.limits("global", ["GPUS_ALL_REGIONS"])["GPUS_ALL_REGIONS"] == QuotaLimit(16, 11)


_FAMILY = "GPUS_PER_GPU_FAMILY:NVIDIA_H200"


def test_newer_accelerators_have_limits_of_the_cloud_quotas_api(clouds: RestClouds) -> None:
    """By family or by a name of their own, where Compute Engine lists none; their usage is unknown."""
    clouds.store.inject(InjectedFault(QUOTA, _FAMILY, details={"limit": 8}))
    clouds.store.inject(InjectedFault(QUOTA, "PREEMPTIBLE_NVIDIA_B200_GPUS", details={"limit": 0}))
    names = [_FAMILY, "PREEMPTIBLE_NVIDIA_B200_GPUS", "TPUS_PER_TPU_FAMILY:CT6E", "CPUS"]
    limits = quota_source(_GKE, PROJECT).limits("us-central1", names)
    assert limits[_FAMILY] == QuotaLimit(8)
    assert limits["PREEMPTIBLE_NVIDIA_B200_GPUS"] == QuotaLimit(0)
    assert limits["TPUS_PER_TPU_FAMILY:CT6E"].limit
    assert limits["CPUS"].usage == 0
    assert _FAMILY not in quota_source(_GKE, PROJECT).limits("us-central1", [])


@pytest.mark.parametrize(
    ("status", "name", "reason"),
    [
        (403, _FAMILY, r"Not so\. Enable the Cloud Quotas API"),
        (0, "GPUS_PER_GPU_FAMILY:NVIDIA_X", "lists no limit for region us-central1, gpu_family NVIDIA_X"),
        (0, "NVIDIA_X_GPUS", "The project has no such quota"),
    ],
)
def test_a_limit_that_cannot_be_read_is_unknown_with_its_reason(
    clouds: RestClouds, status: int, name: str, reason: str
) -> None:
    """The other limits are compared all the same."""
    if status:
        details = {"status": status, "message": "Not so."}
        clouds.store.inject(InjectedFault(API_ERROR, _QUOTA_INFO, details=details))
    limits = quota_source(_GKE, PROJECT).limits("us-central1", [name])
    assert limits[name].limit is None
    assert re.search(reason, limits[name].reason)
    assert limits["CPUS"].limit


def test_a_quota_info_that_fails_for_another_reason_is_an_error(
    clouds: RestClouds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage says nothing of the limit."""
    monkeypatch.setattr("time.sleep", _no_sleep)
    clouds.store.inject(InjectedFault(API_ERROR, _QUOTA_INFO, 6, {"status": 503, "message": "Later."}))
    with pytest.raises(CloudApiError, match=r"Later\."):
        quota_source(_GKE, PROJECT).limits("us-central1", [_FAMILY])


def test_azure_counts_vcpus_by_family_over_pages(clouds: RestClouds) -> None:
    """On-demand machines count for family and region, spot machines for the low-priority cores alone."""
    pool = a_pool(cloud="aks", region="eastus", machine="Standard_D8as_v5", capacity="on-demand")
    _with_machines(clouds, pool, 2)
    _with_machines(clouds, pool.having(name="spot", capacity="spot"), 1)
    clouds.store.inject(InjectedFault(QUOTA, "cores", details={"limit": 20}))
    source = quota_source(_AKS, SUBSCRIPTION)
    limits = source.limits("eastus", ["cores"])
    assert limits["cores"] == QuotaLimit(20, 16)
    assert limits["standardDASv5Family"].usage == 16
    assert limits["lowPriorityCores"].usage == 8
    assert source.limits("global", []) == {}


@pytest.mark.parametrize("cloud", CloudKind)
@pytest.mark.parametrize(
    ("status", "advice"),
    [(403, "Ask an owner"), (429, "run this again in a minute"), (500, "returned status 500")],
)
def test_a_refusal_has_the_clouds_message_and_what_to_do(
    clouds: RestClouds, monkeypatch: pytest.MonkeyPatch, cloud: CloudKind, status: int, advice: str
) -> None:
    """Retries end after a few attempts."""
    clouds.store.inject(
        InjectedFault(API_ERROR, _OPERATIONS[cloud], 6, {"status": status, "message": "Not so."})
    )
    if status != 403:
        monkeypatch.setattr("time.sleep", _no_sleep)
    with pytest.raises(CloudApiError, match=r"Not so\.") as refusal:
        quota_source(cloud, _ACCOUNTS[cloud]).limits(_REGIONS[cloud], [])
    assert advice in str(refusal.value)


@pytest.mark.parametrize("cloud", CloudKind)
def test_too_many_requests_are_repeated(clouds: RestClouds, cloud: CloudKind) -> None:
    """One refusal with `Retry-After` does not reach the user."""
    clouds.store.inject(
        InjectedFault(API_ERROR, _OPERATIONS[cloud], 1, {"status": 429, "message": "Slower."})
    )
    assert quota_source(cloud, _ACCOUNTS[cloud]).limits(_REGIONS[cloud], [])
    assert not clouds.store.faults(API_ERROR)


@pytest.mark.usefixtures("clouds")
@pytest.mark.parametrize("cloud", CloudKind)
def test_what_does_not_exist_is_refused(cloud: CloudKind) -> None:
    """An unknown project or subscription, and an unknown region, have the cloud's message."""
    with pytest.raises(CloudApiError, match="nowhere"):
        quota_source(cloud, _ACCOUNTS[cloud]).limits("nowhere", [])
    with pytest.raises(CloudApiError, match=r"(?s)else.*Check the stack's"):
        quota_source(cloud, "else").limits(_REGIONS[cloud], [])


def test_credentials_that_are_refused_name_the_login(
    clouds: RestClouds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing or refused credentials are reported with the login command."""
    monkeypatch.setenv("IDENTITY_HEADER", "another")
    with pytest.raises(CredentialsError, match="`az login`"):
        quota_source(_AKS, SUBSCRIPTION).limits("eastus", [])
    write_google_login(tmp_path / "expired.json", clouds.origin, "an expired one")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "expired.json"))
    with pytest.raises(CredentialsError, match="`gcloud auth application-default login`"):
        quota_source(_GKE, PROJECT)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing"))
    with pytest.raises(CredentialsError, match="`gcloud auth application-default login`"):
        quota_source(_GKE, PROJECT)


@pytest.mark.parametrize(
    "path", ["/compute/v1/projects/acme-ml/zones", "/subscriptions/1/other", "/", "/token"]
)
def test_an_unknown_path_is_not_found(clouds: RestClouds, path: str) -> None:
    """An unknown path, or a known path with another method, is not found."""
    assert requests.get(clouds.origin + path, timeout=10).status_code == 404


def test_requests_without_credentials_are_refused(clouds: RestClouds) -> None:
    """With 401, and a token for an unknown login with `invalid_grant`."""
    for path in (f"/compute/v1/projects/{PROJECT}", "/v1/services/6F81-5844-456A/skus"):
        assert requests.get(clouds.origin + path, timeout=10).status_code == 401
    form = {"grant_type": "refresh_token", "refresh_token": "another"}
    refused = requests.post(f"{clouds.origin}/token", data=form, timeout=10)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
