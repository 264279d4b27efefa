"""Azure's built-in roles that a cluster needs, by their ids, which are the same in every tenant.

Source: learn.microsoft.com/azure/role-based-access-control/built-in-roles (networking, general, containers;
2026-11).
"""

from collections.abc import Iterable, Mapping

import pulumi
from pulumi_azure_native import authorization

from ebbtide.declaration.model.members import is_object_id

NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
PRIVATE_DNS_ZONE_CONTRIBUTOR = "b12aa53e-6015-4669-85d0-8515ebb3ae7f"
KEY_VAULT_CRYPTO_USER = "12338af0-0e69-4776-bea7-57ae8d297424"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
STORAGE_BLOB_DATA_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
AKS_RBAC_CLUSTER_ADMIN = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
"""Azure Kubernetes Service RBAC Cluster Admin: all permissions inside a cluster, and fetching its
kubeconfig."""

AKS_CLUSTER_USER = "4abbcc35-e782-43d8-92c5-2d3f1bd2253f"
"""Azure Kubernetes Service Cluster User Role: fetching the kubeconfig, which has no credential if Entra ID is
enabled."""

ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
"""AcrPull: pulling images from a container registry."""

ACR_PUSH = "8311e382-0749-4cb8-b61a-304f252e45ec"
"""AcrPush: pushing images to and pulling them from a container registry."""

STORAGE_FILE_DATA_PRIVILEGED_CONTRIBUTOR = "69566ab7-960f-475b-8e7c-b3118f30c6bd"
"""Storage File Data Privileged Contributor: reading and writing files of a share over REST, with Entra ID."""

LOG_ANALYTICS_DATA_READER = "3b03c2da-16b3-4a49-8834-0f8130efdd3b"
"""Log Analytics Data Reader: queries of a workspace, whose rows a condition limits."""


def definition(subscription: str, role: str) -> str:
    """Return the resource id of a built-in role in a subscription, for a role assignment."""
    return f"/subscriptions/{subscription}/providers/Microsoft.Authorization/roleDefinitions/{role}"


def for_anyone(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
    """Omit the principal type of a role assignment, so that Azure looks it up.

    By default the SDK sends `User` (azure-native 3.29.0), which Azure rejects for a service principal.
    """
    return pulumi.ResourceTransformationResult({**args.props, "principal_type": None}, args.opts)


def assign_to_members(
    prefix: str,
    members: Iterable[str],
    *,
    subscription: str,
    scope: pulumi.Input[str],
    role: str,
    parent: pulumi.Resource,
    conditions: Mapping[str, str] | None = None,
) -> None:
    """Assign a role to members. Azure assigns roles only to object ids: a member declared by user name gets
    none.

    Args:
        prefix: prefix of the names of the assignments.
        members: declared members, each once: Azure takes one assignment of a role to a principal and scope.
        subscription: subscription id.
        scope: resource id of the scope.
        role: id of the role.
        parent: parent of the assignments.
        conditions: the condition of each member's assignment, if there is one.
    """
    for member in filter(is_object_id, members):
        authorization.RoleAssignment(
            f"{prefix}-{member}",
            scope=scope,
            role_definition_id=definition(subscription, role),
            principal_id=member,
            condition=conditions[member] if conditions else None,
            condition_version="2.0" if conditions else None,
            # The member may be a group, or a user of another tenant.
            opts=pulumi.ResourceOptions(parent=parent, transformations=[for_anyone]),
        )
