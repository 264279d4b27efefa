"""A team's container registry on Azure."""

from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import authorization, containerregistry, resources

from ebbtide.declaration.model.physical_names import RESOURCE_GROUP, fitting

from ..ownership import Labels
from . import roles


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryArgs:
    """Arguments of `Registry`.

    Attributes:
        name: name of the registry.
        group_name: name of the resource group of a registry that is kept.
        subscription: subscription id, part of the ids of role definitions.
        resource_group: name of the cluster's resource group, for a registry that is deleted with the stack.
        location: region.
        keep: whether it remains when the stack is destroyed.
        members: declared members, who may push.
        kubelet: object id of the identity with which nodes pull images.
        labels: billing labels.
    """

    name: str
    group_name: str
    subscription: str
    resource_group: pulumi.Input[str]
    location: str
    keep: bool
    members: tuple[str, ...]
    kubelet: pulumi.Input[str]
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])


class Registry(pulumi.ComponentResource):
    """A container registry without an admin account; its grants are limited to the registry.

    A registry that is kept has a separate resource group, like a bucket that is kept: deleting the cluster's
    group deletes its contents. Azure assigns roles only to object ids: a member declared by user name cannot
    push. Sources: azure-container-registry docs, container-registry-skus and
    container-registry-rbac-built-in-roles-overview (2026); azure-aks-docs,
    cluster-container-registry-integration (2026).
    """

    def __init__(self, name: str, args: RegistryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:Registry", name, {}, opts)
        stays = pulumi.ResourceOptions(parent=self, retain_on_delete=args.keep)
        group = args.resource_group
        if args.keep:
            group = resources.ResourceGroup(
                f"{name}-kept",
                resource_group_name=fitting(args.group_name, RESOURCE_GROUP),
                location=args.location,
                tags=dict(args.labels),
                opts=stays,
            ).name
        registry = containerregistry.Registry(
            f"{name}-registry",
            registry_name=args.name,
            resource_group_name=group,
            location=args.location,
            sku={"name": "Basic"},
            admin_user_enabled=False,
            tags=dict(args.labels),
            opts=stays,
        )
        inside = pulumi.ResourceOptions(parent=self)
        pull = roles.definition(args.subscription, roles.ACR_PULL)
        authorization.RoleAssignment(
            f"{name}-pull",
            scope=registry.id,
            role_definition_id=pull,
            principal_id=args.kubelet,
            principal_type="ServicePrincipal",
            opts=inside,
        )
        roles.assign_to_members(
            f"{name}-push",
            args.members,
            subscription=args.subscription,
            scope=registry.id,
            role=roles.ACR_PUSH,
            parent=self,
        )
        self.register_outputs({})
