"""What a virtual machine size is: from the catalog, or as far as its name says."""

import re
from typing import Final

from ebbtide.catalog import CloudKind, Machine, find_machine

_NAME: Final = re.compile(r"Standard_[A-Z]+(\d+)[a-z]*(?:-\d+)?[a-z]*(?:_[A-Za-z0-9]+)*")
_GIB_PER_VCPU: Final = 4

_EPHEMERAL_GIB_PER_VCPU: Final = {
    "Dsv3": 25.0,
    "Fsv2": 16.0,
    "Ddsv5": 37.5,
    "Dadsv5": 37.5,
    "NCasT4_v3": 36.0,
    "Dsv5": 0.0,
    "Dasv5": 0.0,
    "Esv5": 0.0,
}
"""Cache or temporary disk of a machine, GiB for each vCPU, where a node's disk can be (learn.microsoft.com,
azure/virtual-machines/sizes, 2026; Azure/AKS#2635 for the T4).
Of families that are not here it is not known."""

_NO_EPHEMERAL: Final = frozenset({"BS"})


def machine(size: str) -> Machine | None:
    """A machine of a size; of one that the catalog does not have, vCPUs are as many as the name says, and
    memory is that of a general machine. None where no size of Azure is called so.
    """
    found = find_machine(CloudKind.AKS, size)
    if found is not None:
        return found
    match = _NAME.fullmatch(size)
    if match is None:
        return None
    vcpus = int(match[1])
    return Machine(CloudKind.AKS, size, vcpus, vcpus * _GIB_PER_VCPU, "")


def takes_ephemeral(found: Machine) -> bool:
    """Whether a node's disk may be on the machine itself (Azure/AKS#2068)."""
    return found.family not in _NO_EPHEMERAL


def ephemeral_bytes(found: Machine) -> int | None:
    """How large a node's disk on the machine itself can be; None where it is not known."""
    each = _EPHEMERAL_GIB_PER_VCPU.get(found.family)
    return None if each is None else int(each * found.vcpus * 2**30)


def default_disk_gib(found: Machine) -> int:
    """How large a node's disk is where nothing is said (azure-aks-docs, concepts-storage, 2026-08)."""
    steps = ((64, 1024), (16, 512), (8, 256))
    return next((size for vcpus, size in steps if found.vcpus >= vcpus), 128)
