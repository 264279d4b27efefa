"""Abilities of machine series: what nodes of one can be, beside what they offer."""

from functools import cache
from typing import Literal

from ebbtide.catalog.clouds import CloudKind
from ebbtide.catalog.machines import Machine
from ebbtide.catalog.tables import rows


@cache
def _abilities() -> dict[tuple[str, str], dict[str, str]]:
    return {(row["cloud"], row["series"]): row for row in rows("series")}


def series_of(machine: Machine) -> str:
    """Machine series: on Google Cloud what a machine type begins with, on Azure its family."""
    return machine.name.partition("-")[0] if machine.cloud is CloudKind.GKE else machine.family


def takes(machine: Machine, ability: Literal["compact", "spot"]) -> bool:
    """Return whether a machine's series can be placed compactly, or bought as spot; true for one that the
    table does not have."""
    row = _abilities().get((machine.cloud.value, series_of(machine)), {})
    return row.get(ability) != "no"
