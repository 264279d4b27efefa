"""Machine types: their series and accelerators, retirements, and the quotas that they count towards."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, cast

from ebbtide.declaration.catalog.resources import DEFAULT_NODE, NodeSettings, Resources, allocatable
from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind

AMD64: Final = "amd64"
ARM64: Final = "arm64"
ARCHITECTURE: Final = "kubernetes.io/arch"
"""Key of Kubernetes' label with a node's architecture, and of GKE's taint on Arm nodes (GKE docs,
prepare-arm-workloads-for-deployment, 2026)."""
_AZURE_ARM: Final = re.compile(
    r"Standard_([A-Z]+\d+(-\d+)?[a-oq-z]*p|[A-Z]+\d+\w*_GB\d+_)", re.ASCII | re.IGNORECASE
)
"""VM sizes of Azure with Arm processors: those with the feature `p` after the number of vCPUs, and those with
NVIDIA's Grace (azure-compute-docs, vm-naming-conventions and nd-gb200-v6-series, 2026)."""
SPOT_OR_FLEX_START: Final = frozenset({"a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g"})
"""Machine types of Google Cloud that are sold as spot and flex-start only (Compute Engine docs,
accelerator-optimized-machines, 2026)."""
_TIER_1_VCPUS: Final = "30"
"""Minimum of vCPUs for the egress tier TIER_1 in a series without a row (Compute Engine docs,
configure-vm-with-high-bandwidth-configuration, 2023)."""
DECLARED = "declared"
"""Source of a machine type that the catalog does not have."""
_CUSTOM: Final = re.compile(r"(?:[a-z0-9]+-)?custom-(?P<vcpus>\d+)-(?P<mib>\d+)(?:-ext)?")
HUGE_PAGES: Final = "nodeConfig.linuxNodeConfig.hugepagesConfig"
"""Path of the huge pages of a GKE node pool."""
HUGE_PAGE_MIB: Final = {"hugepageSize2m": 2, "hugepageSize1g": 1024}


@dataclass(frozen=True, slots=True)
class CustomTypes:
    """Custom machine types of a series.

    Attributes:
        memory_gib: minimum and maximum memory by the supported numbers of vCPUs, GiB.
        extended: True if a name with `-ext` may have more memory.
    """

    memory_gib: Mapping[int, tuple[float, float]]
    extended: bool


@dataclass(frozen=True, slots=True)
class MachineSeries:
    """A machine series of Google Cloud.

    Attributes:
        name: name, such as `a3`.
        compact: True if it supports compact placement.
        compact_max_nodes: maximum number of nodes of one compact placement; None if unknown.
        gvnic_only: True if gVNIC is its only network interface.
        threads: threads of a core, if no machine of the series can change them.
        confidential: types of confidential nodes, each with the prefix of the machine types that support it.
        architecture: architecture of its processors, as in Kubernetes' label `kubernetes.io/arch`.
        custom: its custom machine types; None if it has none.
        huge_pages_1g: True if it supports huge pages of 1 GiB.
        nested_virtualization: False if none of its machines supports nested virtualization.
    """

    name: str
    compact: bool
    compact_max_nodes: int | None
    gvnic_only: bool
    threads: int | None
    confidential: Mapping[str, str]
    architecture: str
    custom: CustomTypes | None
    huge_pages_1g: bool
    nested_virtualization: bool


@cache
def _series_rows(cloud: CloudKind) -> dict[str, dict[str, str]]:
    return {row["series"]: row for row in rows("machine_series") if row["cloud"] == cloud}


@cache
def machine_series(machine: str) -> MachineSeries | None:
    """Return the series of a machine type of Google Cloud; None if unknown."""
    row = _series_rows(CloudKind.GKE).get(series_name(machine))
    if row is None:
        return None
    return MachineSeries(
        name=row["series"],
        compact=row["compact"] == "yes",
        compact_max_nodes=int(row["compact_max_nodes"]) if row["compact_max_nodes"] else None,
        gvnic_only=row["gvnic_only"] == "yes",
        threads=int(row["threads"]) if row["threads"] else None,
        confidential={
            kind: prefix for kind, _, prefix in (it.partition(":") for it in row["confidential"].split())
        },
        architecture=row["architecture"] or AMD64,
        custom=_custom_types(row) if row["custom_vcpus"] else None,
        huge_pages_1g=row["huge_pages_1g"] == "yes",
        nested_virtualization=row["nested"] != "no",
    )


def has_tier_1(machine: str, vcpus: int) -> bool:
    """Return whether a machine type of Google Cloud supports the egress tier TIER_1: it has the vCPUs that
    its series needs, and those that a variant needs (`48 lssd:288`)."""
    cell = _series_rows(CloudKind.GKE).get(series_name(machine), {}).get("tier_1_vcpus")
    first, *variants = (cell or _TIER_1_VCPUS).split()
    limits = dict(variant.split(":") for variant in variants)
    least = next((limit for suffix, limit in limits.items() if f"-{suffix}" in machine), first)
    return least != "no" and vcpus >= int(least)


def series_name(machine: str) -> str:
    """Return the name of a machine type's series on Google Cloud: its first part, and `n1` for the oldest
    types, whose names lack it (`custom-4-16384`)."""
    first = machine.partition("-")[0]
    return "n1" if first in {"custom", "f1", "g1"} else first


def _custom_types(row: Mapping[str, str]) -> CustomTypes:
    """Read numbers of vCPUs such as `2 4 8 16-96/16`, and memory of a vCPU such as `0.5-8`, or of each number
    of vCPUs such as `4:16-32`."""
    vcpus = set[int]()
    for part in row["custom_vcpus"].split():
        ends, _, step = part.partition("/")
        first, _, last = ends.partition("-")
        vcpus.update(range(int(first), int(last or first) + 1, int(step or 1)))
    ranges = {count: memory for count, _, memory in (it.rpartition(":") for it in row["custom_gib"].split())}

    def limits(count: int) -> tuple[float, float]:
        own = ranges.get(str(count))
        least, most = map(float, (own or ranges[""]).split("-"))
        return (least, most) if own else (least * count, most * count)

    return CustomTypes({count: limits(count) for count in sorted(vcpus)}, row["custom_extended"] == "yes")


def architecture(cloud: CloudKind, machine: str) -> str:
    """Return the architecture of a machine type's processors, as in Kubernetes' label `kubernetes.io/arch`;
    `amd64` for an unknown series."""
    match cloud:
        case CloudKind.GKE:
            series = machine_series(machine)
            return series.architecture if series else AMD64
        case CloudKind.AKS:
            return ARM64 if _AZURE_ARM.match(machine) else AMD64


def can_be_spot(family: str) -> bool:
    """Return whether a family of Azure's machines is available as spot; true if unknown."""
    return _series_rows(CloudKind.AKS).get(family, {}).get("spot") != "no"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type of a cloud.

    Attributes:
        cloud: cloud that offers it.
        name: name in the cloud, such as `n1-highmem-8` or `Standard_D4s_v5`.
        vcpus: virtual CPUs.
        memory_gib: memory, GiB.
        family: machine family, which determines the quotas.
        accelerator: type of the built-in accelerators; empty for none.
        accelerator_count: number of built-in accelerators.
        accelerator_memory_gib: memory of one accelerator, GiB; None without accelerators.
        attachable: True if accelerators can be attached (N1 on Google Cloud; nothing on Azure).
        source: source of the row.
        threads_per_core: threads of a core; None for the machine's own, two on all but a few series.
        huge_pages_mib: memory in huge pages, MiB, which pods request by itself.
    """

    cloud: CloudKind
    name: str
    vcpus: int
    memory_gib: float
    family: str
    accelerator: str = ""
    accelerator_count: int = 0
    accelerator_memory_gib: float | None = None
    attachable: bool = False
    source: str = DECLARED
    threads_per_core: int | None = None
    huge_pages_mib: int = 0

    def allocatable(self, node: NodeSettings = DEFAULT_NODE) -> Resources:
        """Return the allocatable resources of one machine: those not reserved for kubelet and system.

        With one thread per core, a node has half of the vCPUs that are billed and count against the quota.
        """
        cpus = max(1, self.vcpus // 2) if self.threads_per_core == 1 else self.vcpus
        whole = allocatable(self.cloud, self.name, cpus, self.memory_gib, node)
        return replace(whole, memory_mib=whole.memory_mib - self.huge_pages_mib)


@cache
def _machines() -> dict[tuple[str, str], Machine]:
    machines = (
        Machine(
            cloud=CloudKind(row["cloud"]),
            name=row["machine_type"],
            vcpus=int(row["vcpus"]),
            memory_gib=float(row["memory_gib"]),
            family=row["family"],
            accelerator=row["gpu_type"],
            accelerator_count=int(row["gpu_count"]),
            accelerator_memory_gib=float(row["gpu_memory_gib"]) if row["gpu_memory_gib"] else None,
            attachable=row["attachable_gpus"] == "yes",
            source=row["source"],
        )
        for row in rows("machines")
    )
    return {(machine.cloud.value, machine.name): machine for machine in machines}


def find_machine(cloud: CloudKind, name: str) -> Machine | None:
    """Return the machine type with exactly that name; None if the catalog has none."""
    return _machines().get((cloud.value, name))


def custom_machine(name: str) -> Machine | None:
    """Return the custom machine type of a name such as `n2-custom-4-8192`; None for any other name."""
    match = _CUSTOM.fullmatch(name)
    if match is None:
        return None
    family = series_name(name)
    gib = int(match["mib"]) / 1024
    return Machine(CloudKind.GKE, name, int(match["vcpus"]), gib, family, attachable=family == "n1")


@cache
def _spellings() -> dict[str, str]:
    return {name.lower(): name for cloud, name in _machines() if cloud == CloudKind.AKS.value}


def spelled(name: str) -> str:
    """Return the catalog's spelling of a VM size of Azure, whose API ignores case; others as they are."""
    return _spellings().get(name.lower(), name)


def machine_names(cloud: CloudKind) -> list[str]:
    """Return the names of all machine types of a cloud, in the order of the catalog."""
    return [name for kind, name in _machines() if kind == cloud.value]


@cache
def _attachable() -> dict[str, list[tuple[int, int, float]]]:
    table: dict[str, list[tuple[int, int, float]]] = {}
    for row in rows("attachable"):
        limit = (int(row["count"]), int(row["max_vcpus"]), float(row["max_memory_gib"]))
        table.setdefault(row["accelerator"], []).append(limit)
    return table


def huge_pages_mib(config: object) -> int:
    """Return the memory of a GKE node in huge pages, MiB: the numbers of pages of each size in its
    configuration; 0 for none, or if malformed."""
    if not isinstance(config, Mapping):
        return 0
    counts = cast("Mapping[str, object]", config)
    return sum(
        count * mib for size, mib in HUGE_PAGE_MIB.items() if isinstance(count := counts.get(size), int)
    )


def attachable_types() -> list[str]:
    """Return the accelerator types that can be attached to a machine type without built-in ones."""
    return list(_attachable())


def attachable_memory_gib(accelerator: str) -> float | None:
    """Return the memory of an attachable accelerator, GiB; None for an unknown type."""
    memory = (row["gpu_memory_gib"] for row in rows("attachable") if row["accelerator"] == accelerator)
    return next(map(float, memory), None)


def attachable_counts(machine: Machine, accelerator: str) -> list[int]:
    """Return the accepted numbers of accelerators of a type on a machine, given the limits on the machine's
    vCPUs and memory."""
    if not machine.attachable:
        return []
    return [
        count
        for count, max_vcpus, max_memory_gib in _attachable().get(accelerator, [])
        if machine.vcpus <= max_vcpus and machine.memory_gib <= max_memory_gib
    ]


@dataclass(frozen=True, slots=True)
class Retirement:
    """The retirement of a machine type or an accelerator.

    Attributes:
        date: year, month and day.
        is_past: True if the date was past when the table was written, independent of the current date.
        successor: what to declare instead.
    """

    date: str
    is_past: bool
    successor: str


@cache
def _retirements() -> dict[tuple[str, str], Retirement]:
    return {
        (row["cloud"], name): Retirement(row["retired"], row["retired"] < row["as_of"], row["successor"])
        for row in rows("retirements")
        for name in row["names"].split()
    }


def retired_names(cloud: CloudKind) -> tuple[str, ...]:
    """Return the machine types and accelerator types of a cloud that are retired, or will be."""
    return tuple(name for kind, name in _retirements() if kind == cloud.value)


def retirement(cloud: CloudKind, name: str) -> Retirement | None:
    """Return the retirement of a machine type or accelerator type; None for no retirement."""
    return _retirements().get((cloud.value, name))


@cache
def _quotas() -> dict[tuple[str, str, str], tuple[str, str]]:
    return {
        (row["cloud"], row["family"], row["accelerator"]): (row["on_demand"], row["spot"])
        for row in rows("quotas")
    }


def quota_names(
    cloud: CloudKind, family: str, accelerator: str = "", *, spot: bool = False
) -> tuple[str, ...]:
    """Return the quota metrics of a machine family and of an accelerator on it, cores first.

    Args:
        family: machine family of the catalog (`n1`, `NCasT4_v3`).
        accelerator: accelerator type; empty for none.
        spot: True for spot, preemptible, flex-start and queued nodes, which have separate quotas.

    Returns:
        The metric names, without quotas that the cloud does not check (a g2's cores) or that have no source.
    """
    keys = [(cloud.value, family, "")] + ([(cloud.value, family, accelerator)] if accelerator else [])
    names = [_quotas()[key][1 if spot else 0] for key in keys if key in _quotas()]
    return tuple(name for name in names if name)
