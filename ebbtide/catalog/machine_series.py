"""Facts about Google Cloud's machine series."""

from dataclasses import dataclass
from functools import cache

from ebbtide.catalog.tables import rows


@dataclass(frozen=True, slots=True)
class MachineSeries:
    """A machine series.

    Attributes:
        name: such as `a3`.
        compact_max_nodes: the most nodes of one compact placement; None where that is not known.
        gvnic_only: whether its machines have no other network interface than gVNIC.
    """

    name: str
    compact_max_nodes: int | None
    gvnic_only: bool


@cache
def _table() -> dict[str, MachineSeries]:
    return {
        row["series"]: MachineSeries(
            name=row["series"],
            compact_max_nodes=int(row["compact_max_nodes"]) if row["compact_max_nodes"] else None,
            gvnic_only=row["gvnic_only"] == "yes",
        )
        for row in rows("machine_series")
    }


def machine_series(machine: str) -> MachineSeries | None:
    """The series of a machine type; None where it is not known."""
    return _table().get(machine.partition("-")[0])
