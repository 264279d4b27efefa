"""Disks: types of boot disks, ephemeral disks of AKS, and local SSDs of Google Cloud's machine types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind

_PREMIUM: Final = {
    f"disk-premium-p{tier}-{gib}gib": gib
    for tier, gib in {4: 32, 6: 64, 10: 128, 15: 256, 20: 512, 30: 1024, 40: 2048}.items()
}
"""Sizes of Azure's premium disks, GiB (Azure docs, disks-types, 2026). A disk is billed as the next larger
size."""
_NO_TEMPORARY_DISK: Final = re.compile(
    r"Standard_(B\d+\w*_v2|FX\d+(-\d+)?[a-ce-z]*_v2|(?![DE]\d+(-\d+)?as?_v4)[DEF]C?\d+(-\d+)?[a-ce-z]*_v[4-9])"
)
"""VM sizes of Azure without a temporary disk: since the fourth version those without the feature `d`, but for
Dav4 and Eav4, and the newer burstable sizes (azure-compute-docs azure-vms-no-temp-disk and
vm-naming-conventions, 2026)."""
LARGEST_EPHEMERAL_GIB = 2040
"""Maximum size of an ephemeral disk on any machine type, GiB (azure-docs, ephemeral-os-disks.md, 2023)."""
LOCAL_SSD_GIB = 375
"""Size of one disk on most machine types, GiB (Compute Engine docs, local-ssd, 2026)."""


@cache
def _boot_disks(cloud: CloudKind) -> Mapping[str, tuple[str, ...]]:
    """Return the boot disk types by pattern of machine types, the default first, as in the table."""
    return {row["machines"]: (*row["types"].split(),) for row in rows("boot_disks") if row["cloud"] == cloud}


@cache
def boot_disk_types(cloud: CloudKind, machine: str = "") -> tuple[str, ...]:
    """Return the boot disk types of a machine type, the default first.

    Args:
        cloud: cloud of the machine type.
        machine: machine type; omitted for the types of all.
    """
    table = _boot_disks(cloud)
    if not machine:
        return tuple(dict.fromkeys(kind for kinds in table.values() for kind in kinds))
    return next(kinds for pattern, kinds in table.items() if fnmatchcase(machine, pattern))


def disk_items(cloud: CloudKind) -> tuple[str, ...]:
    """Return the price table's items for boot disks: a GiB of a type, or a size."""
    match cloud:
        case CloudKind.GKE:
            return tuple(f"{name}-gib" for name in boot_disk_types(cloud))
        case CloudKind.AKS:
            return tuple(_PREMIUM)


def premium_disk(size_gib: int) -> str | None:
    """Return the item of an Azure premium disk; None if it exceeds every size."""
    return next((item for item, gib in _PREMIUM.items() if gib >= size_gib), None)


def has_temporary_disk(machine_type: str) -> bool:
    """Return whether a VM size of Azure has a temporary disk; true if unknown."""
    return _NO_TEMPORARY_DISK.fullmatch(machine_type) is None


@cache
def _ephemeral() -> dict[str, int]:
    return {name: int(row["gib"]) for row in rows("ephemeral") for name in row["machine_types"].split()}


def ephemeral_gib(machine_type: str) -> int | None:
    """Return the maximum size of an AKS machine's ephemeral OS disk, GiB: the size of its cache, or without
    a cache of its temporary disk; 0 for none, None if unknown.

    A size with fewer vCPUs (`E4-2ds_v5`) has the disk of the whole one. Sizes since the fifth version have no
    cache (azure-aks-docs concepts-storage.md, 2026).
    """
    partitions = _ephemeral().get(re.sub(r"-\d+", "", machine_type))
    if partitions is not None:
        return min(partitions, LARGEST_EPHEMERAL_GIB)
    return None if has_temporary_disk(machine_type) or machine_type.endswith("_v4") else 0


@dataclass(frozen=True, slots=True)
class LocalSsds:
    """Local SSDs that a machine type supports.

    Attributes:
        counts: supported numbers of disks; empty without local SSDs.
        fixed: True if the machine type always has the same number.
        gib: size of one disk, GiB.
    """

    counts: tuple[int, ...]
    fixed: bool
    gib: int

    @property
    def own(self) -> int | None:
        """The number that the machine type always has; None if it is configurable."""
        return self.counts[0] if self.fixed else None


@cache
def _table() -> dict[str, LocalSsds]:
    return {
        row["machine_type"]: LocalSsds(
            tuple(map(int, row["counts"].split())),
            row["attached"] == "fixed",
            int(row["gib"] or LOCAL_SSD_GIB),
        )
        for row in rows("local_ssds")
    }


def local_ssds(machine: str) -> LocalSsds | None:
    """Return the local SSDs of a machine type; None if unknown."""
    return _table().get(machine)
