"""Resource groups."""

from typing import Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks import clusters
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.store import Resource


def _delete_contents(arm: Arm, group: Resource) -> None:
    """Delete all resources of a resource group, regardless of the program that created them
    (learn.microsoft.com, azure-resource-manager/management/delete-resource-group, 2026)."""
    for resource in arm.below(group.id, CLUSTER):
        clusters.end(arm, resource)
    remaining = [resource for resource in arm.below(group.id) if resource.urn]
    if remaining:
        arm.store.log_event(
            "group-deleted",
            f"Resource group {ids.last(group.id)} is deleted with what is still in it: "
            f"{', '.join(ids.last(resource.id) for resource in remaining)}.",
            group=group.id,
            with_it=[resource.id for resource in remaining],
        )


KINDS: Final = (
    ResourceKind(
        type="azure-native:resources:ResourceGroup",
        api_version="2024-03-01",
        outputs=lambda _request: {"properties": {"provisioningState": "Succeeded"}},
        before_delete=_delete_contents,
    ),
)
