"""Facts about machine series."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind


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
    """

    name: str
    compact: bool
    compact_max_nodes: int | None
    gvnic_only: bool
    threads: int | None
    confidential: Mapping[str, str]
    architecture: str


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


@cache
def _table(cloud: CloudKind) -> dict[str, dict[str, str]]:
    return {row["series"]: row for row in rows("machine_series") if row["cloud"] == cloud}


@cache
def machine_series(machine: str) -> MachineSeries | None:
    """Return the series of a machine type of Google Cloud; None if unknown."""
    row = _table(CloudKind.GKE).get(machine.partition("-")[0])
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
    )


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
    return _table(CloudKind.AKS).get(family, {}).get("spot") != "no"
