"""The nodes' service account."""

from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects, serviceaccount

from ebbtide.declaration.model.physical_names import SERVICE_ACCOUNT, fitting

GRANTS = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Everything that a node needs: to write logs and metrics, and to pull images (GKE docs, hardening, 2026)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityArgs:
    """Arguments of an identity.

    Attributes:
        name: name of the nodes' cluster.
        project: project id of the account and its role grants.
    """

    name: str
    project: str


class Identity(pulumi.ComponentResource):
    """A service account for nodes, with the minimum that a node needs.

    Workloads do not run as it: pods have their own identities through Workload Identity, instead of the
    cloud-platform scope of the nodes, as in the stories.
    """

    email: pulumi.Output[str]
    grants: tuple[pulumi.Resource, ...]
    """Prerequisites of a node's first image pull."""

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:Identity", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=fitting(f"{args.name}-nodes", SERVICE_ACCOUNT),
            display_name=f"Nodes of cluster {args.name}",
            project=args.project,
            opts=inside,
        )
        self.email = account.email
        self.grants = tuple(
            projects.IAMMember(
                f"{name}-{role.rpartition('/')[2]}",
                project=args.project,
                role=role,
                member=account.member,
                opts=inside,
            )
            for role in GRANTS
        )
        self.register_outputs({"email": self.email})
