"""Access of team members to a cluster."""

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import authorization

from ebbtide.model import Aks
from ebbtide.model import Cluster as Declaration
from ebbtide.model.members import is_object_id, members_of

from . import roles


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersArgs:
    """Arguments of the members' access.

    Attributes:
        declaration: the whole declaration; its teams are read from it.
        cloud: its cloud.
        cluster: resource id of the cluster.
    """

    declaration: Declaration
    cloud: Aks
    cluster: pulumi.Input[str]


class Members(pulumi.ComponentResource):
    """A role assignment for each member of any team, once, however many teams they are in, on this cluster
    alone: Azure Kubernetes Service Cluster User Role, by which the kubeconfig is fetched. What one may do
    inside is the namespace's role. A user who is declared by name has none: Azure assigns to object ids.

    Only for a cluster that knows Entra ID, as ours does: on any other that role makes an administrator
    (azure-aks-docs, control-kubeconfig-access, 2023-03).
    """

    def __init__(self, name: str, args: MembersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:Members", name, {}, opts)
        for member in filter(is_object_id, members_of(args.declaration)):
            authorization.RoleAssignment(
                f"{name}-{member}",
                scope=args.cluster,
                role_definition_id=roles.definition(args.cloud.subscription, roles.AKS_CLUSTER_USER),
                principal_id=member,
                # A group, or a user of another tenant.
                opts=pulumi.ResourceOptions(parent=self, transformations=[roles.for_anyone]),
            )
        self.register_outputs({})
