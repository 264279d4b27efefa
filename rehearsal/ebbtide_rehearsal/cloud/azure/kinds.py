"""Resource types of Azure without nodes: by their templates and references; keys of storage accounts."""

import base64
from collections.abc import Mapping
from hashlib import sha512
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import Arm, Request, ResourceKind, inner, outputs_of
from ebbtide_rehearsal.cloud.store import Resource

ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"
ACCOUNT: Final = "azure-native:storage:StorageAccount"
AGENT_POOL: Final = "azure-native:containerservice:AgentPool"
CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"
GROUP: Final = "azure-native:resources:ResourceGroup"
IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
NETWORK: Final = "azure-native:network:VirtualNetwork"
REGISTRY: Final = "azure-native:containerregistry:Registry"
SUBNET: Final = "azure-native:network:Subnet"
WORKSPACE: Final = "azure-native:operationalinsights:Workspace"

API_VERSIONS: Final = {
    GROUP: "2024-03-01",
    NETWORK: "2024-05-01",
    SUBNET: "2024-05-01",
    IDENTITY: "2023-01-31",
    CREDENTIAL: "2023-01-31",
    ASSIGNMENT: "2022-04-01",
    "azure-native:containerservice:MaintenanceConfiguration": "2025-09-01",
    "azure-native:compute:CapacityReservationGroup": "2024-11-01",
    "azure-native:compute:CapacityReservation": "2024-11-01",
    "azure-native:kubernetesconfiguration:Extension": "2023-05-01",
    ACCOUNT: "2024-01-01",
    "azure-native:storage:BlobContainer": "2024-01-01",
    "azure-native:storage:BlobServiceProperties": "2024-01-01",
    "azure-native:storage:ManagementPolicy": "2024-01-01",
    "azure-native:storage:FileShare": "2024-01-01",
    REGISTRY: "2023-01-01-preview",
    WORKSPACE: "2023-09-01",
    "azure-native:monitor:AzureMonitorWorkspace": "2023-04-03",
    "azure-native:monitor:DataCollectionEndpoint": "2022-06-01",
    "azure-native:monitor:DataCollectionRule": "2022-06-01",
    "azure-native:monitor:DataCollectionRuleAssociation": "2022-06-01",
    "azure-native:monitor:DiagnosticSetting": "2021-05-01-preview",
}
"""API version of each type in azure-native 3.29."""

_UNIQUE: Final = {
    ASSIGNMENT: ("RoleAssignmentExists", ("scope", "roleDefinitionId", "principalId")),
    CREDENTIAL: ("Conflict", ("resourceName", "issuer", "subject")),
    ACCOUNT: ("StorageAccountAlreadyTaken", ("accountName",)),
    REGISTRY: ("AlreadyInUse", ("registryName",)),
}
"""Properties that no two resources of a type share, whatever their ids, and Azure's code of the refusal
(Azure/bicep#11367, Azure/bicep-types-az#2054, hashicorp/terraform#11485,
MicrosoftDocs/azure-dev-docs#1303)."""


def outputs(request: Request) -> Mapping[str, Any]:
    """Return what Azure adds to a resource."""
    identity = assigned(request)
    return {
        **outputs_of(request),
        "provisioningState": "Succeeded",
        **({"identity": identity} if identity else {}),
        **({"scope": request.inputs["scope"]} if "scope" in request.inputs else {}),
    }


def assigned(request: Request) -> dict[str, Any]:
    """Return the `identity` of a resource with user-assigned identities, a list of ids in inputs, an object
    in the state; empty without them."""
    identity = inner(request.inputs, "identity")
    listed = identity.get("userAssignedIdentities")
    if not listed:
        return {}
    found = {str(name): request.cloud.find(str(name)) for name in listed}
    given = {
        name: {key: known.state[key] if known else "" for key in ("clientId", "principalId")}
        for name, known in found.items()
    }
    return {"type": identity.get("type", "UserAssigned"), "userAssignedIdentities": given}


def keys(account: Resource) -> Mapping[str, Any]:
    """Return an account's keys. Azure lists them even if access by key is disabled."""
    account_keys = {name: sha512(f"{account.id}/{name}".encode()).digest() for name in ("key1", "key2")}
    return {
        "keys": [
            {"keyName": name, "permissions": "FULL", "value": base64.b64encode(key).decode()}
            for name, key in account_keys.items()
        ]
    }


def end_contents(arm: Arm, group: Resource) -> None:
    """Log what is deleted with a resource group, regardless of the program that created it
    (learn.microsoft.com, azure-resource-manager/management/delete-resource-group, 2026)."""
    remaining = [resource for resource in arm.below(group.id) if resource.urn and resource.type != CLUSTER]
    if remaining:
        arm.store.log_event(
            "group-deleted",
            f"Resource group {ids.last(group.id)} is deleted with what is still in it: "
            f"{', '.join(ids.last(resource.id) for resource in remaining)}.",
            group=group.id,
            with_it=[resource.id for resource in remaining],
        )


KINDS: Final = tuple(
    ResourceKind(
        type=token,
        api_version=version,
        inside=("subnets", "virtualNetworkPeerings") if token == NETWORK else (),
        outputs=outputs,
        unique=_UNIQUE.get(token),
        events="registry" if token == REGISTRY else "",
    )
    for token, version in API_VERSIONS.items()
)
"""Resource types."""
