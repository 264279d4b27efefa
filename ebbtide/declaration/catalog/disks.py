"""Disks: types of boot disks, ephemeral disks of AKS, and local SSDs of Google Cloud's machine types."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind


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


_PREMIUM: Final = {
    f"disk-premium-p{tier}-{gib}gib": gib
    for tier, gib in {4: 32, 6: 64, 10: 128, 15: 256, 20: 512, 30: 1024, 40: 2048}.items()
}
"""Sizes of Azure's premium disks, GiB (Azure docs, disks-types, 2026). A disk is billed as the next larger
size."""


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


_NO_TEMPORARY_DISK = frozenset(
    (
        "Dasv5",
        "Dasv6",
        "Dpsv6",
        "Dsv4",
        "Dsv5",
        "Dsv6",
        "Easv5",
        "Easv6",
        "Epsv6",
        "Esv4",
        "Esv5",
        "Esv6",
        "Fasv6",
    )
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
