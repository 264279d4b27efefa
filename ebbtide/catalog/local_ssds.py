"""Local SSDs of Google Cloud's machine types."""

from dataclasses import dataclass
from functools import cache

from ebbtide.catalog.tables import rows

LOCAL_SSD_GIB = 375
"""Size of one disk (Compute Engine docs, local-ssd, 2026); the Z3 and Z4D series have larger ones."""


@dataclass(frozen=True, slots=True)
class LocalSsds:
    """The local SSDs that a machine type can have.

    Attributes:
        counts: numbers of disks to choose from; none for a machine without local SSDs.
        fixed: whether the machine type always has its one number.
    """

    counts: tuple[int, ...]
    fixed: bool

    @property
    def own(self) -> int | None:
        """The number that the machine type always has; None where it is chosen."""
        return self.counts[0] if self.fixed else None


@cache
def _table() -> dict[str, LocalSsds]:
    return {
        row["machine_type"]: LocalSsds(tuple(map(int, row["counts"].split())), row["attached"] == "fixed")
        for row in rows("local_ssds")
    }


def local_ssds(machine: str) -> LocalSsds | None:
    """Return the local SSDs of a machine type; None if they are not known."""
    return _table().get(machine)
