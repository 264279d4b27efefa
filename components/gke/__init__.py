"""GKE: network, identity, cluster, node pools, and a component for all of them."""

from .cluster import Cluster, ClusterArgs
from .deploy import deploy, provider
from .identity import Identity, IdentityArgs
from .keys import KeyGrants, KeyGrantsArgs
from .members import Members, MembersArgs
from .network import Network, NetworkArgs
from .node_pool import NodePool, NodePoolArgs
from .registry import Registry, RegistryArgs
from .team_resources import artifacts, team_resources
from .tenant import Tenant, TenantArgs
from .topology import Topology, key_grants

__all__ = [
    "Cluster",
    "ClusterArgs",
    "Identity",
    "IdentityArgs",
    "KeyGrants",
    "KeyGrantsArgs",
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
    "artifacts",
    "deploy",
    "key_grants",
    "provider",
    "team_resources",
]
