"""The control plane's identity."""

from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import authorization, managedidentity

from ebbtide.declaration.model.keys import AksKeys

from ..ownership import Labels
from . import roles


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityArgs:
    """Arguments of an identity.

    Attributes:
        name: its name in its resource group.
        resource_group: name of that group.
        location: region.
        subscription: subscription id, part of the ids of role definitions.
        subnet: resource id of the nodes' subnet.
        reservations: resource ids of the pools' capacity reservation groups.
        dns_zone: resource id of the declared private DNS zone of a private cluster, if any.
        keys: declared keys.
        labels: billing labels.
    """

    name: str
    resource_group: pulumi.Input[str]
    location: str
    subscription: str
    subnet: pulumi.Input[str]
    reservations: tuple[str, ...] = ()
    dns_zone: str | None = None
    keys: AksKeys = field(default_factory=AksKeys)
    labels: Labels


class Identity(pulumi.ComponentResource):
    """A user-assigned identity for the control plane, with grants that are created before the cluster.

    A system-assigned identity is created with the cluster, too late for the grant on the cluster's subnet.
    Grants: Network Contributor on the subnet (azure-aks-docs, concepts-network-cni-overview, 2026), and for a
    pool on reserved capacity, Contributor on the resource group of the reservations
    (use-capacity-reservation-groups, 2026-05; effective after up to an hour, according to that page). For a
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
        scopes: list[tuple[str, pulumi.Input[str], str]] = [
            (f"{name}-subnet", args.subnet, roles.NETWORK_CONTRIBUTOR)
        ]
        scopes += [
            (f"{name}-reservations{group.replace('/', '-')}", group, roles.CONTRIBUTOR)
            for group in reservation_groups(args.reservations)
        ]
        if args.dns_zone is not None:
            # AKS links the zone to the network, whose id is the subnet's without its last two segments.
            vnet = pulumi.Output.from_input(args.subnet).apply(
                lambda subnet: subnet.partition("/subnets/")[0]
            )
            scopes += [
                (f"{name}-dns-zone", args.dns_zone, roles.PRIVATE_DNS_ZONE_CONTRIBUTOR),
                (f"{name}-network", vnet, roles.NETWORK_CONTRIBUTOR),
            ]
        if args.keys.grant and args.keys.vault is not None:
            scopes.append((f"{name}-vault", args.keys.vault, roles.KEY_VAULT_CRYPTO_USER))
        if args.keys.grant and args.keys.disks is not None:
            scopes.append((f"{name}-disk-encryption-set", args.keys.disks, roles.READER))
        self.grants = tuple(
            authorization.RoleAssignment(
                leaf,
                scope=scope,
                role_definition_id=roles.definition(args.subscription, role),
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
