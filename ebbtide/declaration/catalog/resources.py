"""Resources of nodes: allocatable ones, less what kernel and cloud reserve, and footprints of system pods and
add-ons."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, assert_never

from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind

_EVICTION_MIB: Final = 100
_KERNEL_MIB: Final = (
    (0, 0), (1, 66), (2, 83), (4, 183), (8, 253), (16, 412), (32, 675), (64, 1350), (128, 2267), (192, 3757),
    (256, 4233), (1922, 30898),
)  # fmt: skip
"""Memory that the kernel keeps, in MiB, by the machine's memory in GiB: the maximum of GKE 1.33 to 1.36, COS
and Ubuntu, amd64 and arm64 (GoogleCloudPlatform/cluster-autoscaler@7d250507, config/os-reserved.yaml), except
confidential nodes. AKS publishes none; nodes of 4 and 16 GiB reported 165 and 365 (Azure/AKS#3525, #1216).
"""
_GKE_DEFAULT_PODS: Final = 110
_GKE_MORE_PODS_CPU_M: Final = 400
_GKE_STREAMING: Final = 0.04
_AKS_CPU_KEPT_M = [(64, 740), (32, 420), (16, 260), (8, 180), (4, 140), (2, 100), (1, 60)]
_AKS_DEFAULT_PODS: Final = 250


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


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Settings of a node on which its reservations depend.

    Attributes:
        max_pods: maximum number of pods; None for the cloud's default.
        image_streaming: True if images are streamed, for which GKE reserves memory.
    """

    max_pods: int | None = None
    image_streaming: bool = False


DEFAULT_NODE: Final = NodeSettings()


def _kernel_mib(memory_gib: float) -> float:
    """Interpolate the memory that the kernel keeps, as GKE's autoscaler does."""
    upper = min(bisect_left(_KERNEL_MIB, (memory_gib, 0)), len(_KERNEL_MIB) - 1)
    (low, least), (high, most) = list(pairwise(_KERNEL_MIB))[max(0, upper - 1)]
    return least + (memory_gib - low) * (most - least) / (high - low)


def _tiered(amount: float, tiers: list[tuple[float, float]]) -> float:
    """Return a share that falls as the amount grows; each tier is (width, share)."""
    total = 0.0
    for width, share in tiers:
        part = min(amount, width)
        total += part * share
        amount -= part
    return total


def _gke(name: str, vcpus: int, memory_gib: float, node: NodeSettings) -> Resources:
    """Return the allocatable resources on GKE, without the kernel's part.

    Reserved CPU: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % above, and 400 m
    with more than 110 pods. Shared-core E2 keeps 940 of its millicores for pods. Reserved memory: 25 % of the
    first 4,000 MiB, 20 % of the next 4,000, 10 % of the next 8,000, 6 % of the next 112,000, 2 % above; with
    image streaming 4 % more.
    (cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes, read 2026-11;
    GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/cloudprovider/gke/reserved.go)
    """
    memory_mib = memory_gib * 1024
    kept = _tiered(memory_mib, [(4e3, 0.25), (4e3, 0.2), (8e3, 0.1), (112e3, 0.06), (1e12, 0.02)])
    kept = 255.0 if memory_mib <= 1000 else kept * (1 + _GKE_STREAMING * node.image_streaming)  # noqa: PLR2004
    cores_kept = _tiered(vcpus, [(1, 0.06), (1, 0.01), (2, 0.005), (1e6, 0.0025)])
    cpu_m = 940.0 if name in {"e2-micro", "e2-small", "e2-medium"} else (vcpus - cores_kept) * 1000
    if (node.max_pods or 0) > _GKE_DEFAULT_PODS:
        cpu_m -= _GKE_MORE_PODS_CPU_M
    return Resources(cpu_m, memory_mib - kept)


def _aks(vcpus: int, memory_gib: float, node: NodeSettings) -> Resources:
    """Return the allocatable resources on AKS from Kubernetes 1.29, without the kernel's part.

    Reserved CPU depends on the core count; reserved memory is 20 MB for each pod that a node may have, and
    50 MB, or a quarter of the memory if that is less (learn.microsoft.com/azure/aks/
    node-resource-reservations, read 2026-11; 250 pods are the default of Azure CNI Overlay).
    """
    memory_mib = memory_gib * 1024
    cpu_kept = next((kept for cores, kept in _AKS_CPU_KEPT_M if vcpus >= cores), 60)
    memory_kept = min(20 * (node.max_pods or _AKS_DEFAULT_PODS) + 50, memory_mib / 4)
    return Resources(vcpus * 1000 - cpu_kept, memory_mib - memory_kept)


def allocatable(
    cloud: CloudKind, name: str, vcpus: int, memory_gib: float, node: NodeSettings = DEFAULT_NODE
) -> Resources:
    """Return the allocatable resources of a node of a machine type.

    Args:
        cloud: cloud with its reservations.
        name: machine type; shared-core types have their own rules.
        vcpus: virtual CPUs.
        memory_gib: memory, GiB.
    """
    match cloud:
        case CloudKind.GKE:
            before = _gke(name, vcpus, memory_gib, node)
        case CloudKind.AKS:
            before = _aks(vcpus, memory_gib, node)
        case _:
            assert_never(cloud)
    return Resources(before.cpu_m, before.memory_mib - _kernel_mib(memory_gib) - _EVICTION_MIB)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Resources that an item uses on the system pool or on each node, and other billed resources. A preview
    treats a chart or a kustomization as one resource; this has its content.

    Attributes:
        item: `gke`, `aks` (the cloud's own system pods), or the name of an add-on; with `-node` for the pods
            on each node.
        requests: total requests.
        most: largest requests of a single pod, by resource; zero for pods on each node, where all must fit.
        pods: number of permanent pods; None if unknown.
        volumes_gib: size of each disk that it claims, GiB.
        load_balancers: number of services of type LoadBalancer.
        webhooks: number of webhook configurations.
        verified: True if all values were read from a manifest or measured, and none is an estimate.
        as_of: year and month of the source.
        source: source of the values.
    """

    item: str
    requests: Resources
    most: Resources
    pods: int | None
    volumes_gib: tuple[int, ...]
    load_balancers: int
    webhooks: int
    verified: bool
    as_of: str
    source: str


@cache
def _footprints() -> dict[str, Footprint]:
    return {
        row["item"]: Footprint(
            item=row["item"],
            requests=Resources(float(row["cpu_m"]), float(row["memory_mib"])),
            most=Resources(float(row["most_cpu_m"] or 0), float(row["most_memory_mib"] or 0)),
            pods=int(row["pods"]) if row["pods"] else None,
            volumes_gib=tuple(int(size) for size in row["volumes_gib"].split()),
            load_balancers=int(row["load_balancers"] or 0),
            webhooks=int(row["webhooks"] or 0),
            verified=row["verified"] == "yes",
            as_of=row["as_of"],
            source=row["source"],
        )
        for row in rows("footprints")
    }


def footprint(item: str) -> Footprint:
    """Return the footprint of the cloud's system pods or of an add-on.

    Raises:
        KeyError: the catalog has no such item.
    """
    return _footprints()[item]


def has_footprint(item: str) -> bool:
    """Return whether the catalog has an item's footprint."""
    return item in _footprints()
