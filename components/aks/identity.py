"""Role assignments: of the control plane's identity, and of the teams' members.

Ids of Azure's built-in roles are the same in every tenant
(learn.microsoft.com/azure/role-based-access-control, built-in-roles: networking, general, containers;
2026-11).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import authorization, managedidentity

from ebbtide.declaration.model.cloud import Aks, AksKeys
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.tenancy import is_object_id

from ..topology import Labels

NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
PRIVATE_DNS_ZONE_CONTRIBUTOR = "b12aa53e-6015-4669-85d0-8515ebb3ae7f"
KEY_VAULT_CRYPTO_USER = "12338af0-0e69-4776-bea7-57ae8d297424"
KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER = "e147488a-f6f5-4113-8e2d-b22465e65bf6"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityArgs:
    """Arguments of an identity.

    Attributes:
        name: its name in its resource group.
        resource_group: name of that group.
        subscription: subscription id, part of the ids of role definitions.
        subnet: resource id of the nodes' subnet; None for AKS's own, on which AKS grants the role itself.
        pool_subnets: resource ids of the subnets that pools have of their own.
        reservations: resource ids of the pools' existing capacity reservation groups.
        own_reservations: resource ids of those that the stack creates, by name of the pool.
        dns_zone: resource id of the declared private DNS zone of a private cluster, if any.
    """

    name: str
    resource_group: pulumi.Input[str]
    location: str
    subscription: str
    subnet: pulumi.Input[str] | None
    pool_subnets: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()
    own_reservations: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])
    dns_zone: str | None = None
    keys: AksKeys = field(default_factory=AksKeys)
    labels: Labels


class Identity(pulumi.ComponentResource):
    """A user-assigned identity for the control plane, with grants that are created before the cluster.

    A system-assigned identity is created with the cluster, too late for the grant on the cluster's subnet.
    Grants: Network Contributor on subnets (azure-aks-docs, concepts-network-cni-overview, 2026), and for a
    pool on reserved capacity, Contributor on the resource group of the reservations
    (use-capacity-reservation-groups, 2026-05; effective after up to an hour, according to that page), or on
    the capacity reservation group alone if the stack creates it: a role there suffices (azurerm's acceptance
    test capacityReservationGroup of node pools, 2026-08, on Azure with Owner). For a
    declared private DNS zone: Private DNS Zone Contributor on it, and Network Contributor on the network
    (private-clusters, 2026-08). For a key that encrypts Secrets: Key Vault Crypto User on its vault
    (use-kms-etcd-encryption, 2025-12). For a disk encryption set: Reader on it
    (azure-disk-customer-managed-keys, 2024-02).
    """

    identity: pulumi.Output[str]
    """Resource id of the identity."""
    grants: tuple[pulumi.Resource, ...]
    """Prerequisites of the cluster, and of a pool on reserved capacity."""

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:Identity", name, {}, opts)
        identity = managedidentity.UserAssignedIdentity(
            name,
            resource_name_=args.name,
            resource_group_name=args.resource_group,
            location=args.location,
            tags=dict(args.labels),
            opts=pulumi.ResourceOptions(parent=self),
        )
        scopes: list[tuple[str, pulumi.Input[str], str]] = []
        if args.subnet is not None:
            scopes.append((f"{name}-subnet", args.subnet, NETWORK_CONTRIBUTOR))
        scopes += [
            (f"{name}-subnet-{subnet.rpartition('/')[2]}", subnet, NETWORK_CONTRIBUTOR)
            for subnet in args.pool_subnets
        ]
        scopes += [
            (f"{name}-reservations{group.replace('/', '-')}", group, CONTRIBUTOR)
            for group in reservation_groups(args.reservations)
        ]
        scopes += [
            (f"{name}-reservation-{pool}", group, CONTRIBUTOR)
            for pool, group in args.own_reservations.items()
        ]
        if args.dns_zone is not None and args.subnet is not None:
            # AKS links the zone to the network, whose id is the subnet's without its last two segments.
            vnet = pulumi.Output.from_input(args.subnet).apply(
                lambda subnet: subnet.partition("/subnets/")[0]
            )
            scopes += [
                (f"{name}-dns-zone", args.dns_zone, PRIVATE_DNS_ZONE_CONTRIBUTOR),
                (f"{name}-network", vnet, NETWORK_CONTRIBUTOR),
            ]
        if args.keys.grant and args.keys.secrets is not None and args.keys.vault is not None:
            scopes.append((f"{name}-vault", args.keys.vault, KEY_VAULT_CRYPTO_USER))
        if args.keys.grant and args.keys.disks is not None:
            scopes.append((f"{name}-disk-encryption-set", args.keys.disks, READER))
        self.grants = tuple(
            authorization.RoleAssignment(
                leaf,
                scope=scope,
                role_definition_id=role_definition(args.subscription, role),
                principal_id=identity.principal_id,
                principal_type="ServicePrincipal",
                opts=pulumi.ResourceOptions(parent=self),
            )
            for leaf, scope, role in scopes
        )
        self.identity = identity.id
        self.register_outputs({"identity": self.identity})


def reservation_groups(reservations: tuple[str, ...]) -> list[str]:
    """Return the distinct resource groups of capacity reservation groups, as resource ids.

    A malformed resource id is skipped; AKS reports it.
    """
    groups = (reservation.partition("/providers/")[0] for reservation in reservations)
    return list(dict.fromkeys(group for group in groups if "/resourceGroups/" in group))


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultKeyArgs:
    """Arguments of the identity with which stored data is encrypted.

    Attributes:
        name: its name in its resource group.
        resource_group: that of the encrypted resource, so that both are kept or deleted.
        subscription: subscription id, part of the ids of role definitions.
        key: identifier of the key, with or without its version.
        vault: resource id of the key's vault.
        keep: whether it remains when the stack is destroyed, as the encrypted resource does.
    """

    name: str
    resource_group: pulumi.Input[str]
    location: str
    subscription: str
    key: str
    vault: str
    keep: bool
    labels: Labels


class VaultKey(pulumi.ComponentResource):
    """A user-assigned identity with the role Key Vault Crypto Service Encryption User on the vault of a key.

    A storage account or registry that is kept could not be read without it. Sources: azure-docs,
    customer-managed-keys-configure-new-account (2026); azure-container-registry docs,
    tutorial-enable-customer-managed-keys (2026).
    """

    identity: pulumi.Output[str]
    """Resource id of the identity."""
    client_id: pulumi.Output[str]
    key: str
    grants: tuple[pulumi.Resource, ...]
    """Prerequisites of the encrypted resource."""

    def __init__(self, name: str, args: VaultKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:VaultKey", name, {}, opts)
        stays = pulumi.ResourceOptions(parent=self, retain_on_delete=args.keep)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=args.name,
            resource_group_name=args.resource_group,
            location=args.location,
            tags=dict(args.labels),
            opts=stays,
        )
        grant = authorization.RoleAssignment(
            f"{name}-vault",
            scope=args.vault,
            role_definition_id=role_definition(args.subscription, KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER),
            principal_id=identity.principal_id,
            principal_type="ServicePrincipal",
            opts=stays,
        )
        self.identity, self.client_id, self.key = identity.id, identity.client_id, args.key
        self.grants = (grant,)
        self.register_outputs({"identity": self.identity})


class Members(pulumi.ComponentResource):
    """Roles of each member of any team: on this cluster only, Azure Kubernetes Service Cluster User Role,
    which permits fetching the kubeconfig; on the cluster's logs, Log Analytics Data Reader, for the rows of
    the teams' namespaces. Permissions inside the cluster come from the namespace's role.

    Only for a cluster with Entra ID, which a created cluster always has: on any other, this role grants
    administrator access (azure-aks-docs, control-kubeconfig-access, 2023-03).
    """

    def __init__(
        self,
        name: str,
        declaration: Declaration,
        cloud: Aks,
        cluster: pulumi.Input[str],
        workspace: pulumi.Input[str] | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Assign the roles.

        Args:
            cluster: resource id of the cluster.
            workspace: resource id of the workspace with the cluster's logs; None without one.
        """
        super().__init__("ebbtide:aks:Members", name, {}, opts)
        members, subscription = declaration.members, cloud.subscription
        assign_to_members(
            name,
            members,
            subscription=subscription,
            scope=cluster,
            role=AKS_CLUSTER_USER,
            parent=self,
        )
        if workspace is not None:
            assign_to_members(
                f"{name}-logs",
                members,
                subscription=subscription,
                scope=workspace,
                role=LOG_ANALYTICS_DATA_READER,
                parent=self,
                conditions={member: _own_logs(member, declaration) for member in members},
            )
        self.register_outputs({})


def _own_logs(member: str, declaration: Declaration) -> str:
    """Return the condition that limits a role on a workspace to the logs of pods in the namespaces of a
    member's teams (azure-monitor docs, granular-rbac-log-analytics, 2026)."""
    teams = (team for team in declaration.teams if member in team.members)
    namespaces = ", ".join(f"'{team.namespace_name}'" for team in teams)
    provider = "Microsoft.OperationalInsights/workspaces/tables"
    row = f"@Resource[{provider}/record:PodNamespace<$key_case_sensitive$>]"
    return (
        f"((!(ActionMatches{{'{provider}/data/read'}})) OR "
        f"(@Resource[{provider}:name] StringEquals 'ContainerLogV2' AND "
        f"{row} ForAnyOfAnyValues:StringEquals {{{namespaces}}}))"
    )


def role_definition(subscription: str, role: str) -> str:
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
            role_definition_id=role_definition(subscription, role),
            principal_id=member,
            condition=conditions[member] if conditions else None,
            condition_version="2.0" if conditions else None,
            # The member may be a group, or a user of another tenant.
            opts=pulumi.ResourceOptions(parent=parent, transformations=[for_anyone]),
        )
