"""Allocatable resources: machine resources less the cloud's reservations for kubelet, system and eviction."""

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
        """Return whether `need` fits."""
        return self.cpu_m >= need.cpu_m and self.memory_mib >= need.memory_mib

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(self.cpu_m + other.cpu_m, self.memory_mib + other.memory_mib)


def _tiered(amount: float, tiers: list[tuple[float, float]]) -> float:
    """Return a share that falls as the amount grows; each tier is (width, share)."""
    total = 0.0
    for width, share in tiers:
        part = min(amount, width)
        total += part * share
        amount -= part
    return total


def _gke(name: str, vcpus: int, memory_gib: float) -> Resources:
    """Return the allocatable resources on GKE.

    Reserved CPU: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % above. Reserved
    memory: 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112, 2 % above.
    Shared-core E2 keeps 940 of its millicores for pods.
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
    """Return the allocatable resources on AKS from Kubernetes 1.29.

    Reserved CPU depends on the core count; reserved memory is 20 MB per pod + 50 MB, or a quarter of the
    memory if that is less (learn.microsoft.com/azure/aks/node-resource-reservations, read 2026-11; 250 pods
    per node, the default of Azure CNI Overlay).
    """
    memory_mib = memory_gib * _GIB
    cpu_kept = next((kept for cores, kept in _AKS_CPU_KEPT_M if vcpus >= cores), 60)
    memory_kept = min(20 * _AKS_MAX_PODS + 50, memory_mib / 4)
    return Resources(vcpus * 1000 - cpu_kept, memory_mib - memory_kept - _EVICTION_MIB)


def allocatable(cloud: CloudKind, name: str, vcpus: int, memory_gib: float) -> Resources:
    """Return the allocatable resources of a node of a machine type.

    Args:
        cloud: cloud with its reservations.
        name: machine type; shared-core types have their own rules.
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
