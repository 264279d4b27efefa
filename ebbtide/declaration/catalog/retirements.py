"""Machine types and accelerators that a cloud has retired, or will retire."""

from dataclasses import dataclass
from functools import cache

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind


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
