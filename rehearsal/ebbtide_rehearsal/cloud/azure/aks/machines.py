"""Virtual machine sizes, from the catalog or parsed from their names."""

import re
from typing import Final

from ebbtide.declaration.catalog import CloudKind, Machine
from ebbtide_rehearsal.cloud.regions import machine_of
from ebbtide_rehearsal.cloud.store import Store

_NAME: Final = re.compile(r"Standard_[A-Z]+(\d+)[a-z]*(?:-\d+)?[a-z]*(?:_[A-Za-z0-9]+)*")
_GIB_PER_VCPU: Final = 4


def machine(store: Store, size: str) -> Machine | None:
    """Return the machine of a size. If it is neither in the catalog nor declared, vCPUs are parsed from the
    name and the memory is that of a general-purpose machine. None if no size of Azure has such a name."""
    known = machine_of(store, CloudKind.AKS, size)
    if known is not None:
        return known
    match = _NAME.fullmatch(size)
    if match is None:
        return None
    vcpus = int(match[1])
    return Machine(CloudKind.AKS, size, vcpus, vcpus * _GIB_PER_VCPU, "")


def default_disk_gib(known: Machine) -> int:
    """Return the default size of a node's disk in GiB (azure-aks-docs, concepts-storage, 2026-08)."""
    steps = ((64, 1024), (16, 512), (8, 256))
    return next((size for vcpus, size in steps if known.vcpus >= vcpus), 128)
