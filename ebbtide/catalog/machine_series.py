"""Facts about machine series."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from ebbtide.catalog.machines import Machine
from ebbtide.catalog.tables import rows
from ebbtide.cloud_kind import CloudKind


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
    """

    name: str
    compact: bool
    compact_max_nodes: int | None
    gvnic_only: bool
    threads: int | None
    confidential: Mapping[str, str]


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
    )


def can_be_spot(machine: Machine) -> bool:
    """Return whether an Azure machine is available as spot; true if unknown."""
    return _table(CloudKind.AKS).get(machine.family, {}).get("spot") != "no"
