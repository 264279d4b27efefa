"""Access of team members to a cluster."""

from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects

from ebbtide.declaration.model import Cluster as Declaration
from ebbtide.declaration.model import Gke
from ebbtide.declaration.model.members import name_of, principal

ROLE = "roles/container.clusterViewer"
"""The least-privileged predefined role that reaches a control plane: `container.clusters.get` for the
kubeconfig and `container.clusters.connect` for the DNS endpoint; it can also list clusters and read the
project's name (iann0036/iam-dataset@2026-08-22, gcp/roles). Permissions inside the cluster come from the
namespace's role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersArgs:
    """Arguments of the members' access.

    Attributes:
        declaration: the whole declaration; its teams and the cluster's name are read from it.
        cloud: its cloud.
    """

    declaration: Declaration
    cloud: Gke


def iam_condition(name: str, location: str) -> str:
    """Return the IAM condition that restricts a role to one cluster.

    IAM grants GKE's roles only on a project. The cluster's resource name, which the condition checks, has
    `zones` or `locations` in it (cloud.google.com/iam/docs/conditions-resource-attributes, 2026) and, through
    the DNS endpoint, the project's number instead of its id: only the end is the same in all of them.
    """
    return f'resource.name.endsWith("/{location}/clusters/{name}")'


class Members(pulumi.ComponentResource):
    """One grant for each member of any team. Other grants are not changed."""

    def __init__(self, name: str, args: MembersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:Members", name, {}, opts)
        cluster, cloud = args.declaration.name, args.cloud
        for member in args.declaration.members:
            projects.IAMMember(
                f"{name}-{name_of(member)}",
                project=cloud.project,
                role=ROLE,
                member=principal(member),
                condition={
                    "title": f"cluster {cluster}",
                    "description": f"Members of teams on {cluster}, {cloud.location}",
                    "expression": iam_condition(cluster, cloud.location),
                },
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
