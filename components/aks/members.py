"""Access of team members to a cluster."""

from dataclasses import dataclass

import pulumi

from ebbtide.declaration.model import Aks
from ebbtide.declaration.model import Cluster as Declaration

from . import roles


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersArgs:
    """Arguments of the members' access.

    Attributes:
        declaration: the whole declaration; its teams are read from it.
        cloud: its cloud.
        cluster: resource id of the cluster.
        workspace: resource id of the workspace with the cluster's logs; None without one.
    """

    declaration: Declaration
    cloud: Aks
    cluster: pulumi.Input[str]
    workspace: pulumi.Input[str] | None = None


class Members(pulumi.ComponentResource):
    """Roles of each member of any team: on this cluster only, Azure Kubernetes Service Cluster User Role,
    which permits fetching the kubeconfig; on the cluster's logs, Log Analytics Data Reader, for the rows of
    the teams' namespaces. Permissions inside the cluster come from the namespace's role.

    Only for a cluster with Entra ID, which a created cluster always has: on any other, this role grants
    administrator access (azure-aks-docs, control-kubeconfig-access, 2023-03).
    """

    def __init__(self, name: str, args: MembersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:aks:Members", name, {}, opts)
        members, subscription = args.declaration.members, args.cloud.subscription
        roles.assign_to_members(
            name,
            members,
            subscription=subscription,
            scope=args.cluster,
            role=roles.AKS_CLUSTER_USER,
            parent=self,
        )
        if args.workspace is not None:
            roles.assign_to_members(
                f"{name}-logs",
                members,
                subscription=subscription,
                scope=args.workspace,
                role=roles.LOG_ANALYTICS_DATA_READER,
                parent=self,
                conditions={member: _own_logs(member, args.declaration) for member in members},
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
