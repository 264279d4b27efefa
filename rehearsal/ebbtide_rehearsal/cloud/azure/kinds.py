"""Resource types of the fake: every type that the program creates on Azure."""

from collections.abc import Mapping
from typing import Final

from ebbtide_rehearsal.cloud.azure import groups, identities, logs, network, registries, roles, storage
from ebbtide_rehearsal.cloud.azure.aks import agent_pools, clusters, maintenance
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind

_MODULES: Final = (
    groups,
    network,
    identities,
    roles,
    clusters,
    agent_pools,
    maintenance,
    storage,
    registries,
    logs,
)

KINDS: Final[Mapping[str, ResourceKind]] = {kind.type: kind for module in _MODULES for kind in module.KINDS}
"""Resource types by token."""
