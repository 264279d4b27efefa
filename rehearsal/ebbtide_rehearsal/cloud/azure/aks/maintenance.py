"""Maintenance configurations of AKS clusters."""

from typing import Final

from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind

KINDS: Final = (
    ResourceKind(
        type="azure-native:containerservice:MaintenanceConfiguration",
        api_version="2025-09-01",
        parent=CLUSTER,
    ),
)
