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
    """One role assignment for each member of any team, on this cluster only: Azure Kubernetes Service Cluster
    User Role, which permits fetching the kubeconfig. Permissions inside the cluster come from the namespace's
    role. A user declared by name gets no assignment: Azure assigns roles only to object ids.

    Only for a cluster with Entra ID, which a created cluster always has: on any other, this role grants
    administrator access (azure-aks-docs, control-kubeconfig-access, 2023-03).
    """

    def __init__(self, name: str, args: MembersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:Members", name, {}, opts)
        for member in filter(is_object_id, members_of(args.declaration)):
            authorization.RoleAssignment(
                f"{name}-{member}",
                scope=args.cluster,
                role_definition_id=roles.definition(args.cloud.subscription, roles.AKS_CLUSTER_USER),
                principal_id=member,
                # The member may be a group, or a user of another tenant.
                opts=pulumi.ResourceOptions(parent=self, transformations=[roles.for_anyone]),
            )
        self.register_outputs({})
