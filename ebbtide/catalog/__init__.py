"""Facts about the clouds, as dated data files with a source in every row, and their look-up.

The data files stand in `data/`: `machines.csv`, `attachable.csv`, `prices.csv`, `quotas.csv`,
`footprints.csv`, `locations.csv`, `offerings.csv`, `retirements.csv`, `ephemeral.csv`, `series.csv`. A fact
that turns out wrong is fixed there; no code carries one.
"""

from ebbtide.catalog.accelerators import is_tpu, resource_name, short_for
from ebbtide.catalog.allocatable import Resources, allocatable
from ebbtide.catalog.clouds import GKE_REGION_ZONES, PREEMPTIBLE_SECONDS, CloudKind
from ebbtide.catalog.disks import LARGEST_EPHEMERAL_GIB, boot_disk_types, ephemeral_gib
from ebbtide.catalog.footprints import Footprint, footprint
from ebbtide.catalog.locations import Locations, Offering, Region
from ebbtide.catalog.machines import (
    Machine,
    attachable_counts,
    attachable_types,
    cheapest,
    find_machine,
    machine_names,
)
from ebbtide.catalog.prices import Price, find_price, machine_price
from ebbtide.catalog.quotas import quota_names
from ebbtide.catalog.retirements import Retirement, retired_names, retirement
from ebbtide.catalog.series import series_of, takes
from ebbtide.catalog.versions import PINS, Pin

__all__ = [
    "GKE_REGION_ZONES",
    "LARGEST_EPHEMERAL_GIB",
    "PINS",
    "PREEMPTIBLE_SECONDS",
    "CloudKind",
    "Footprint",
    "Locations",
    "Machine",
    "Offering",
    "Pin",
    "Price",
    "Region",
    "Resources",
    "Retirement",
    "allocatable",
    "attachable_counts",
    "attachable_types",
    "boot_disk_types",
    "cheapest",
    "ephemeral_gib",
    "find_machine",
    "find_price",
    "footprint",
    "is_tpu",
    "machine_names",
    "machine_price",
    "quota_names",
    "resource_name",
    "retired_names",
    "retirement",
    "series_of",
    "short_for",
    "takes",
]
