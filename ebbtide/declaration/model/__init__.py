"""Declaration of a cluster with its pools, queues, teams and add-ons, and its validation."""

from ebbtide.declaration.model import addons
from ebbtide.declaration.model.addons import *  # noqa: F403 - every add-on class
from ebbtide.declaration.model.capacity import (
    Capacity,
    FlexStart,
    OnDemand,
    Preemptible,
    Queued,
    Reservation,
    Spot,
)
from ebbtide.declaration.model.cloud import (
    Aks,
    AksAccess,
    AksConsolidation,
    AksNetwork,
    Existing,
    Gke,
    GkeAccess,
    GkeConsolidation,
    GkeNetwork,
)
from ebbtide.declaration.model.cluster import Cluster, Lifetime
from ebbtide.declaration.model.declare import advice, check_pool, declaration_schema, declare
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.model.keys import AksKeys, GkeKeys
from ebbtide.declaration.model.maintenance import Maintenance, MaintenanceExclusion, MaintenanceWindow
from ebbtide.declaration.model.pool import (
    Accelerator,
    Disk,
    GpuSharingConfig,
    LocalSsdConfig,
    MachineShape,
    Nodes,
    Pool,
    Role,
    SecondaryBootDisk,
    Taint,
    TaintEffect,
    Upgrade,
)
from ebbtide.declaration.model.region import Region
from ebbtide.declaration.model.site import Site
from ebbtide.declaration.model.tenancy import (
    Cohort,
    LocalQueue,
    Namespace,
    Preemption,
    Queue,
    QueueUse,
    Registry,
    Team,
)

__all__ = [
    "Accelerator",
    "Aks",
    "AksAccess",
    "AksConsolidation",
    "AksKeys",
    "AksNetwork",
    "Capacity",
    "Cluster",
    "Cohort",
    "DeclarationError",
    "Disk",
    "Existing",
    "Fault",
    "FlexStart",
    "Gke",
    "GkeAccess",
    "GkeConsolidation",
    "GkeKeys",
    "GkeNetwork",
    "GpuSharingConfig",
    "Lifetime",
    "LocalQueue",
    "LocalSsdConfig",
    "MachineShape",
    "Maintenance",
    "MaintenanceExclusion",
    "MaintenanceWindow",
    "Namespace",
    "Nodes",
    "OnDemand",
    "Pool",
    "Preemptible",
    "Preemption",
    "Queue",
    "QueueUse",
    "Queued",
    "Region",
    "Registry",
    "Reservation",
    "Role",
    "SecondaryBootDisk",
    "Site",
    "Spot",
    "Taint",
    "TaintEffect",
    "Team",
    "Upgrade",
    "advice",
    "check_pool",
    "declaration_schema",
    "declare",
]
__all__ += addons.__all__
