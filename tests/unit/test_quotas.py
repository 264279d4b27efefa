"""Quotas that stacks need, by the clouds' own names, beside a cloud's limits."""

import math

import pytest

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.quotas import (
    GLOBAL,
    Quota,
    QuotaCheck,
    Verdict,
    check_quotas,
    quotas,
    without_quota,
)
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.clients.clouds.interfaces import QuotaLimit
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, GKE, Declaration, only
from tests.synth import synth


def _needs(declaration: Declaration) -> dict[tuple[str, str], int]:
    return {(quota.region, quota.name): quota.amount for quota in quotas(read_pools(synth(declaration)))}


def test_gke() -> None:
    """Spot and queued nodes count against quotas of their own; all GPUs count against one of all regions."""
    assert _needs(GKE) == {
        ("us-central1", "CPUS"): 3 * 4,
        ("us-central1", "SSD_TOTAL_GB"): 3 * 30 + 24 * 100,
        ("us-central1", "N2_CPUS"): 10 * 8,
        ("us-central1", "PREEMPTIBLE_CPUS"): 4 * 8,
        ("us-central1", "PREEMPTIBLE_NVIDIA_T4_GPUS"): 4 * 4,
        (GLOBAL, "GPUS_ALL_REGIONS"): 4 * 4 + 10,
        ("us-central1", "A2_CPUS"): 10 * 12,
        ("us-central1", "PREEMPTIBLE_NVIDIA_A100_GPUS"): 10,
    }


def test_aks() -> None:
    """Spot counts against one quota alone, everything else against its family and the region."""
    assert _needs(AKS) == {
        ("eastus", "standardDSv5Family"): 4 * 4 + 2 * 8,
        ("eastus", "cores"): 4 * 4 + 2 * 8,
        ("eastus", "lowPriorityCores"): 10 * 8 + 4 * 4,
    }


def test_pools_are_named() -> None:
    """Every quota lists the pools that count against it."""
    needs = {quota.name: quota.pools for quota in quotas(read_pools(synth(GKE)))}
    assert needs["GPUS_ALL_REGIONS"] == ("t4", "a100")
    assert needs["CPUS"] == ("system",)


def test_a_machine_outside_the_catalog_has_unknown_quotas() -> None:
    """A machine with declared vCPUs is named as one whose price and quotas are unknown."""
    recording = synth(only(GKE, machine={"type": "n9-standard-8", "vcpus": 8, "memoryGib": 32.0}))
    assert without_quota(read_pools(recording)) == ("n9-standard-8",)
    preview = preview_of(recording)
    assert preview.without_quota == ("n9-standard-8",)
    assert preview.cost.maximum.unknown == ("n9-standard-8 (on-demand)", "hyperdisk-balanced-gib")


def test_machines_without_a_documented_quota_are_named() -> None:
    """A machine of the catalog whose quota has no documented name is named, and no other."""
    machine = {"machine": "tpu7x-standard-4t", "tpuTopology": "2x2x1"}
    recording = synth(only(GKE, **machine))
    assert without_quota(read_pools(recording)) == ("tpu7x-standard-4t",)
    assert without_quota(read_pools(synth(GKE))) == without_quota(read_pools(synth(AKS))) == ()


def _need(name: str, amount: int, *pools: str, region: str = "us-central1") -> Quota:
    return Quota(cloud=CloudKind.GKE, region=region, name=name, amount=amount, pools=pools)


@pytest.mark.parametrize(
    ("limit", "verdict", "request_"),
    [
        (QuotaLimit(16, 0), "enough", None),
        (QuotaLimit(16, 1), "in use", 17),
        (QuotaLimit(15, 0), "too low", 16),
        (QuotaLimit(0, 0), "too low", 16),
        (QuotaLimit(15, 2.5), "too low", 19),
        (QuotaLimit(16), "enough", None),
        (QuotaLimit(15), "too low", 16),
        (QuotaLimit(math.inf), "enough", None),
        (QuotaLimit(reason="No access."), "unknown", None),
        (None, "unknown", None),
    ],
)
def test_the_request_is_enough_beside_the_usage(
    limit: QuotaLimit | None, verdict: Verdict, request_: int | None
) -> None:
    """A limit that is not listed is unknown, and never zero; an unknown usage is not counted."""
    limits = {"us-central1": {"N2_CPUS": limit}} if limit else {}
    (check,) = check_quotas([_need("N2_CPUS", 16, "cpu")], limits)
    assert (check.verdict, check.request) == (verdict, request_)


def test_limits_are_of_the_region() -> None:
    """The same quota in another region, or of the project, is another one."""
    needs = [_need("A", 1), _need("A", 1, region="us-east1"), _need("A", 1, region="global")]
    limits = {"us-central1": {"A": QuotaLimit(1, 0)}, "global": {"A": QuotaLimit(2, 0)}}
    assert [check.limit for check in check_quotas(needs, limits)] == [
        QuotaLimit(1, 0),
        QuotaLimit(),
        QuotaLimit(2, 0),
    ]


@pytest.mark.parametrize(("granted", "name", "amount"), [(0, "CPUS", 10), (64, "PREEMPTIBLE_CPUS", 8)])
def test_spot_vcpus_count_as_others_until_they_have_a_quota(granted: int, name: str, amount: int) -> None:
    """Compute Engine takes them from CPUS where PREEMPTIBLE_CPUS is zero."""
    limits = {"us-central1": {"PREEMPTIBLE_CPUS": QuotaLimit(granted, 0), "CPUS": QuotaLimit(24, 0)}}
    needs = [_need("PREEMPTIBLE_CPUS", 8, "spot"), _need("CPUS", 2, "system", "spot")]
    first: QuotaCheck = check_quotas(needs, limits)[0]
    assert (first.quota.name, first.quota.amount) == (name, amount)
    assert set(first.quota.pools) >= {"spot"}


def test_other_quotas_of_zero_stay() -> None:
    """GPUs have no other quota."""
    limits = {"global": {"GPUS_ALL_REGIONS": QuotaLimit(0, 0)}}
    (check,) = check_quotas([_need("GPUS_ALL_REGIONS", 4, region="global")], limits)
    assert (check.quota.name, check.request) == ("GPUS_ALL_REGIONS", 4)
