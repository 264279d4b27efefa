"""Allocatable resources: the machine less the cloud's reservations for kubelet, system and eviction."""

from dataclasses import dataclass
from typing import assert_never

from ebbtide.cloud_kind import CloudKind

_GIB = 1024
_EVICTION_MIB = 100


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU in millicores and memory in MiB."""

    cpu_m: float
    memory_mib: float

    def holds(self, need: "Resources") -> bool:
        """Check that `need` fits."""
        return self.cpu_m >= need.cpu_m and self.memory_mib >= need.memory_mib

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(self.cpu_m + other.cpu_m, self.memory_mib + other.memory_mib)


def _tiered(amount: float, tiers: list[tuple[float, float]]) -> float:
    """Return a share that falls as the amount grows: each tier is (its width, its share)."""
    total = 0.0
    for width, share in tiers:
        part = min(amount, width)
        total += part * share
        amount -= part
    return total


def _gke(name: str, vcpus: int, memory_gib: float) -> Resources:
    """GKE's reservations.

    6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % above; memory 25 % of 4 GiB, 20 % of
    4, 10 % of 8, 6 % of 112, 2 % above. Shared-core E2 keeps 940 of its millicores for pods.
    (cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes, read 2026-11)
    """
    memory_mib = memory_gib * _GIB
    kept = _tiered(
        memory_mib, [(4 * _GIB, 0.25), (4 * _GIB, 0.2), (8 * _GIB, 0.1), (112 * _GIB, 0.06), (1e12, 0.02)]
    )
    if memory_gib < 1:
        kept = 255.0
    cores_kept = _tiered(vcpus, [(1, 0.06), (1, 0.01), (2, 0.005), (1e6, 0.0025)])
    cpu_m = 940.0 if name in {"e2-micro", "e2-small", "e2-medium"} else (vcpus - cores_kept) * 1000
    return Resources(cpu_m, memory_mib - kept - _EVICTION_MIB)


_AKS_CPU_KEPT_M = [(64, 740), (32, 420), (16, 260), (8, 180), (4, 140), (2, 100), (1, 60)]
_AKS_MAX_PODS = 250


def _aks(vcpus: int, memory_gib: float) -> Resources:
    """AKS's reservations from Kubernetes 1.29.

    CPU by core count; memory the lesser of 20 MB a pod + 50 MB, and a quarter.
    (learn.microsoft.com/azure/aks/node-resource-reservations, read 2026-11; 250 pods a node as Azure CNI
    Overlay has it)
    """
    memory_mib = memory_gib * _GIB
    cpu_kept = next((kept for cores, kept in _AKS_CPU_KEPT_M if vcpus >= cores), 60)
    memory_kept = min(20 * _AKS_MAX_PODS + 50, memory_mib / 4)
    return Resources(vcpus * 1000 - cpu_kept, memory_mib - memory_kept - _EVICTION_MIB)


def allocatable(cloud: CloudKind, name: str, vcpus: int, memory_gib: float) -> Resources:
    """Return the allocatable resources of a node of a machine type.

    Args:
        cloud: the cloud, whose reservations apply.
        name: machine type; shared-core types have rules of their own.
        vcpus: virtual CPUs.
        memory_gib: memory, GiB.
    """
    match cloud:
        case CloudKind.GKE:
            return _gke(name, vcpus, memory_gib)
        case CloudKind.AKS:
            return _aks(vcpus, memory_gib)
        case _:
            assert_never(cloud)
