"""Declaration of a cluster with its pools, queues, teams and add-ons, and its validation."""

from ebbtide.model import addons
from ebbtide.model.addons import *  # noqa: F403 - every add-on class
from ebbtide.model.capacity import Capacity, FlexStart, OnDemand, Preemptible, Queued, Reservation, Spot
from ebbtide.model.cloud import (
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
from ebbtide.model.cluster import Cluster, Lifetime
from ebbtide.model.declare import advice, check_pool, declaration_schema, declare
from ebbtide.model.faults import DeclarationError, Fault
from ebbtide.model.keys import AksKeys, GkeKeys
from ebbtide.model.maintenance import Maintenance, MaintenanceExclusion, MaintenanceWindow
from ebbtide.model.pool import (
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
from ebbtide.model.region import Region
from ebbtide.model.site import Site
from ebbtide.model.tenancy import Cohort, LocalQueue, Namespace, Preemption, Queue, QueueUse, Registry, Team

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
