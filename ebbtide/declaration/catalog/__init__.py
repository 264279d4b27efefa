"""Facts about the clouds, in dated data files with a source in every row, and their lookup.

The data files are in `data/`: `machines.csv`, `attachable.csv`, `prices.csv`, `quotas.csv`,
`ephemeral.csv`, `footprints.csv`, `kubernetes_versions.csv`, `local_ssds.csv`, `locations.csv`,
`machine_series.csv`, `offerings.csv`, `partitions.csv`, `retirements.csv`, `tpu_topologies.csv`. Fix a wrong
fact there; no code contains one.
"""

from ebbtide.declaration.catalog.accelerators import (
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
from ebbtide.declaration.catalog.allocatable import NodeSettings, Resources
from ebbtide.declaration.catalog.cloud_specs import (
    CLOUD_SPECS,
    COMPUTE_CLASS,
    FALLBACK,
    POOL_LABEL,
    SMT_DISABLED,
    CloudSpec,
)
from ebbtide.declaration.catalog.clouds import GKE_REGION_ZONES, PREEMPTIBLE_SECONDS
from ebbtide.declaration.catalog.disks import (
    LARGEST_EPHEMERAL_GIB,
    boot_disk_types,
    ephemeral_gib,
    has_temporary_disk,
)
from ebbtide.declaration.catalog.footprints import Footprint, footprint, has_footprint
from ebbtide.declaration.catalog.local_ssds import LOCAL_SSD_GIB, LocalSsds, local_ssds
from ebbtide.declaration.catalog.locations import Locations, Offering, Region
from ebbtide.declaration.catalog.machine_series import (
    AMD64,
    ARCHITECTURE,
    ARM64,
    MachineSeries,
    architecture,
    can_be_spot,
    machine_series,
)
from ebbtide.declaration.catalog.machines import (
    Machine,
    attachable_counts,
    attachable_types,
    cheapest,
    find_machine,
    machine_names,
    spelled,
)
from ebbtide.declaration.catalog.partitions import partitions
from ebbtide.declaration.catalog.prices import Price, find_price, machine_price, node_items
from ebbtide.declaration.catalog.quotas import quota_names
from ebbtide.declaration.catalog.retirements import Retirement, retired_names, retirement
from ebbtide.declaration.catalog.versions import PINS, Pin, kubernetes_versions
from ebbtide.declaration.cloud_kind import CloudKind

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
    "kubernetes_versions",
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
