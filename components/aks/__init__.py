"""AKS: network, identity, cluster, node pools, and a component for all of them."""

from .cluster import Cluster, ClusterArgs
from .deploy import deploy, provider
from .identity import Identity, IdentityArgs
from .maintenance import MaintenanceSchedules, MaintenanceSchedulesArgs
from .members import Members, MembersArgs
from .network import Network, NetworkArgs
from .node_pool import NodePool, NodePoolArgs
from .registry import Registry, RegistryArgs
from .team_resources import team_resources
from .tenant import Tenant, TenantArgs
from .topology import Topology

__all__ = [
    "Cluster",
    "ClusterArgs",
    "Identity",
    "IdentityArgs",
    "MaintenanceSchedules",
    "MaintenanceSchedulesArgs",
    "Members",
    "MembersArgs",
    "Network",
    "NetworkArgs",
    "NodePool",
    "NodePoolArgs",
    "Registry",
    "RegistryArgs",
    "Tenant",
    "TenantArgs",
    "Topology",
    "deploy",
    "provider",
    "team_resources",
]
