"""Facts about the clouds, in dated data files with a source in every row, and their lookup.

The data files are in `data/`: `machines.csv`, `attachable.csv`, `prices.csv`, `quotas.csv`,
`ephemeral.csv`, `footprints.csv`, `local_ssds.csv`, `locations.csv`, `machine_series.csv`, `offerings.csv`,
`partitions.csv`, `retirements.csv`, `tpu_topologies.csv`. Fix a wrong fact there; no code contains one.
"""

from ebbtide.catalog.accelerators import (
    AMD,
    NVIDIA,
    TpuTopologies,
    chips_of,
    default_image,
    is_tpu,
    one_host_topology,
    resource_name,
    short_for,
    tpu_topologies,
    vendor,
)
from ebbtide.catalog.allocatable import NodeSettings, Resources
from ebbtide.catalog.cloud_specs import (
    CLOUD_SPECS,
    COMPUTE_CLASS,
    FALLBACK,
    POOL_LABEL,
    SMT_DISABLED,
    CloudSpec,
)
from ebbtide.catalog.clouds import GKE_REGION_ZONES, PREEMPTIBLE_SECONDS
from ebbtide.catalog.disks import (
    LARGEST_EPHEMERAL_GIB,
    boot_disk_types,
    ephemeral_gib,
    has_temporary_disk,
)
from ebbtide.catalog.footprints import Footprint, footprint, has_footprint
from ebbtide.catalog.local_ssds import LOCAL_SSD_GIB, LocalSsds, local_ssds
from ebbtide.catalog.locations import Locations, Offering, Region
from ebbtide.catalog.machine_series import (
    AMD64,
    ARCHITECTURE,
    ARM64,
    MachineSeries,
    architecture,
    can_be_spot,
    machine_series,
)
from ebbtide.catalog.machines import (
    Machine,
    attachable_counts,
    attachable_types,
    cheapest,
    find_machine,
    machine_names,
    spelled,
)
from ebbtide.catalog.partitions import partitions
from ebbtide.catalog.prices import Price, find_price, machine_price, node_items
from ebbtide.catalog.quotas import quota_names
from ebbtide.catalog.retirements import Retirement, retired_names, retirement
from ebbtide.catalog.versions import PINS, Pin
from ebbtide.cloud_kind import CloudKind

__all__ = [
    "AMD",
    "AMD64",
    "ARCHITECTURE",
    "ARM64",
    "CLOUD_SPECS",
    "COMPUTE_CLASS",
    "FALLBACK",
    "GKE_REGION_ZONES",
    "LARGEST_EPHEMERAL_GIB",
    "LOCAL_SSD_GIB",
    "NVIDIA",
    "PINS",
    "POOL_LABEL",
    "PREEMPTIBLE_SECONDS",
    "SMT_DISABLED",
    "CloudKind",
    "CloudSpec",
    "Footprint",
    "LocalSsds",
    "Locations",
    "Machine",
    "MachineSeries",
    "NodeSettings",
    "Offering",
    "Pin",
    "Price",
    "Region",
    "Resources",
    "Retirement",
    "TpuTopologies",
    "architecture",
    "attachable_counts",
    "attachable_types",
    "boot_disk_types",
    "can_be_spot",
    "cheapest",
    "chips_of",
    "default_image",
    "ephemeral_gib",
    "find_machine",
    "find_price",
    "footprint",
    "has_footprint",
    "has_temporary_disk",
    "is_tpu",
    "local_ssds",
    "machine_names",
    "machine_price",
    "machine_series",
    "node_items",
    "one_host_topology",
    "partitions",
    "quota_names",
    "resource_name",
    "retired_names",
    "retirement",
    "short_for",
    "spelled",
    "tpu_topologies",
    "vendor",
]
