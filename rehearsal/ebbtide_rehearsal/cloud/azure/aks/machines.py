"""Virtual machine sizes, from the catalog or as far as their name tells."""

import re
from typing import Final

from ebbtide.catalog import CloudKind, Machine, find_machine

_NAME: Final = re.compile(r"Standard_[A-Z]+(\d+)[a-z]*(?:-\d+)?[a-z]*(?:_[A-Za-z0-9]+)*")
_GIB_PER_VCPU: Final = 4


def machine(size: str) -> Machine | None:
    """A machine of a size; of one that the catalog does not have, vCPUs are as many as the name says, and
    memory is that of a general machine. None where no size of Azure is called so.
    """
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
