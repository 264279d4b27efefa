"""Needed quotas beside a cloud's limits."""

import math

import pytest

from ebbtide.analysis.quotas import Quota, QuotaCheck, Verdict, check_quotas
from ebbtide.clients.clouds.interfaces import QuotaLimit
from ebbtide.values.cloud_kind import CloudKind


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
