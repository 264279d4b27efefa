"""Quotas that stacks need, by the clouds' own names."""

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.quotas import GLOBAL, quotas, without_quota
from ebbtide.analysis.reading.pools import read_pools
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
    assert without_quota(read_pools(synth(GKE))) == ()
