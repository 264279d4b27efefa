"""Virtual machine sizes, from the catalog or parsed from their names."""

import re
from typing import Final

from ebbtide.declaration.catalog import CloudKind, Machine, find_machine

_NAME: Final = re.compile(r"Standard_[A-Z]+(\d+)[a-z]*(?:-\d+)?[a-z]*(?:_[A-Za-z0-9]+)*")
_GIB_PER_VCPU: Final = 4


def machine(size: str) -> Machine | None:
    """Return the machine of a size. If the catalog does not have it, vCPUs are parsed from the name and the
    memory is that of a general-purpose machine. None if no size of Azure has such a name."""
    known = find_machine(CloudKind.AKS, size)
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
