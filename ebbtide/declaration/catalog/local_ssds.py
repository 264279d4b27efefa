"""Local SSDs of Google Cloud's machine types."""

from dataclasses import dataclass
from functools import cache

from ebbtide.declaration.catalog.tables import rows

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
