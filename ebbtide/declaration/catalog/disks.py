"""Disks: types of boot disks, ephemeral disks of AKS, and local SSDs of Google Cloud's machine types."""

from dataclasses import dataclass
from functools import cache
from typing import Final, assert_never

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind

_PERSISTENT = ("pd-balanced", "pd-standard", "pd-ssd", "hyperdisk-balanced")
_HYPERDISK = ("hyperdisk-balanced",)
_NO_HYPERDISK = ("pd-balanced", "pd-standard", "pd-ssd")
_NO_STANDARD = ("pd-balanced", "pd-ssd", "hyperdisk-balanced")
_AKS = ("managed", "ephemeral")

_HYPERDISK_ONLY = frozenset({"a3-ultra", "a4", "c4", "c4a", "c4d", "ct6e", "g4", "h4d", "n4", "n4a", "n4d"})
"""Families with only Hyperdisk as boot disk: the fourth generation and newer, and A3 Ultra (Compute v1 API,
AttachedDiskInitializeParams.diskType, 2026; kubernetes/k8s.io#8325, 2025-07;
hashicorp/terraform-provider-google#19890, 2024-10; Vertex AI DiskSpec for A3 Ultra, 2026-04)."""


_PERSISTENT_ONLY = frozenset({"e2", "g2", "n1", "n2", "n2d", "t2d"})
"""Families without support for Hyperdisk Balanced (Compute Engine docs, hyperdisk-balanced, 2026;
nextflow-io/nextflow#6841, 2026-03)."""

_WITHOUT_STANDARD = frozenset({"a3-high", "a3-mega", "c3", "c3d"})
"""Families without support for standard persistent disks (Compute Engine docs, general-purpose and
accelerator-optimized machines, supported disk types, 2026)."""


def _of_gke(family: str) -> tuple[str, ...]:
    if family in _HYPERDISK_ONLY:
        return _HYPERDISK
    if family in _PERSISTENT_ONLY:
        return _NO_HYPERDISK
    return _NO_STANDARD if family in _WITHOUT_STANDARD else _PERSISTENT


def boot_disk_types(cloud: CloudKind, family: str = "") -> tuple[str, ...]:
    """Return the boot disk types of a machine family, the default first.

    Args:
        family: machine family of the catalog; omitted if unknown.
    """
    match cloud:
        case CloudKind.GKE:
            return _of_gke(family)
        case CloudKind.AKS:
            return _AKS
        case _:
            assert_never(cloud)


_PREMIUM: Final = {
    f"disk-premium-p{tier}-{gib}gib": gib
    for tier, gib in {4: 32, 6: 64, 10: 128, 15: 256, 20: 512, 30: 1024, 40: 2048}.items()
}
"""Sizes of Azure's premium disks, GiB (Azure docs, disks-types, 2026). A disk is billed as the next larger
size."""


def disk_items(cloud: CloudKind) -> tuple[str, ...]:
    """Return the price table's items for boot disks: a GiB of a type, or a size."""
    return tuple(f"{name}-gib" for name in _PERSISTENT) if cloud is CloudKind.GKE else tuple(_PREMIUM)


def premium_disk(size_gib: int) -> str | None:
    """Return the item of an Azure premium disk; None if it exceeds every size."""
    return next((item for item, gib in _PREMIUM.items() if gib >= size_gib), None)


_NO_TEMPORARY_DISK = frozenset(
    {"Dasv5", "Dasv6", "Dpsv6", "Dsv5", "Dsv6", "Easv6", "Epsv6", "Esv5", "Esv6", "Fasv6"}
)
"""Azure families without a temporary disk and without `d` in their names (Azure docs,
azure-vms-no-temp-disk, 2026)."""


def has_temporary_disk(family: str) -> bool:
    """Return whether Azure machines of a family have a temporary disk; true for an unknown family."""
    return family not in _NO_TEMPORARY_DISK


LARGEST_EPHEMERAL_GIB = 2040
"""Maximum size of an ephemeral disk on any machine type, GiB (azure-docs, ephemeral-os-disks.md, 2023)."""


@cache
def _ephemeral() -> dict[str, int]:
    return {name: int(row["gib"]) for row in rows("ephemeral") for name in row["machine_types"].split()}


def ephemeral_gib(machine_type: str) -> int | None:
    """Return the maximum size of an AKS machine's ephemeral OS disk, GiB: the size of its cache, or without
    a cache of its temporary disk; 0 for none, None if unknown."""
    partitions = _ephemeral().get(machine_type)
    return None if partitions is None else min(partitions, LARGEST_EPHEMERAL_GIB)


LOCAL_SSD_GIB = 375
"""Size of one disk, GiB (Compute Engine docs, local-ssd, 2026). Disks of the Z3 and Z4D series are larger."""


@dataclass(frozen=True, slots=True)
class LocalSsds:
    """Local SSDs that a machine type supports.

    Attributes:
        counts: supported numbers of disks; empty without local SSDs.
        fixed: True if the machine type always has the same number.
    """

    counts: tuple[int, ...]
    fixed: bool

    @property
    def own(self) -> int | None:
        """The number that the machine type always has; None if it is configurable."""
        return self.counts[0] if self.fixed else None


@cache
def _table() -> dict[str, LocalSsds]:
    return {
        row["machine_type"]: LocalSsds(tuple(map(int, row["counts"].split())), row["attached"] == "fixed")
        for row in rows("local_ssds")
    }


def local_ssds(machine: str) -> LocalSsds | None:
    """Return the local SSDs of a machine type; None if unknown."""
    return _table().get(machine)
