"""Facts about machine series."""

from dataclasses import dataclass
from functools import cache

from ebbtide.catalog.machines import Machine
from ebbtide.catalog.tables import rows
from ebbtide.cloud_kind import CloudKind


@dataclass(frozen=True, slots=True)
class MachineSeries:
    """A machine series of Google Cloud.

    Attributes:
        name: such as `a3`.
        compact: whether its nodes can have compact placement.
        compact_max_nodes: the most nodes of one compact placement; None where that is not known.
        gvnic_only: whether its machines have no other network interface than gVNIC.
    """

    name: str
    compact: bool
    compact_max_nodes: int | None
    gvnic_only: bool


@cache
def _table(cloud: CloudKind) -> dict[str, dict[str, str]]:
    return {row["series"]: row for row in rows("machine_series") if row["cloud"] == cloud}


def machine_series(machine: str) -> MachineSeries | None:
    """Return the series of a machine type of Google Cloud; None if it is not known."""
    row = _table(CloudKind.GKE).get(machine.partition("-")[0])
    if row is None:
        return None
    return MachineSeries(
        name=row["series"],
        compact=row["compact"] == "yes",
        compact_max_nodes=int(row["compact_max_nodes"]) if row["compact_max_nodes"] else None,
        gvnic_only=row["gvnic_only"] == "yes",
    )


def can_be_spot(machine: Machine) -> bool:
    """Return whether an Azure machine can be bought as spot; true where that is not known."""
    return _table(CloudKind.AKS).get(machine.family, {}).get("spot") != "no"
