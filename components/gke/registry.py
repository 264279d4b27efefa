"""A team's container registry on Google Cloud."""

from dataclasses import dataclass, field

import pulumi
from pulumi_gcp import artifactregistry

from ebbtide.declaration.model import Registry as Declared
from ebbtide.declaration.model.members import name_of, principal

from ..ownership import Labels

_DAY_SECONDS = 24 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryArgs:
    """Arguments of `Registry`.

    Attributes:
        declared: the registry, as declared.
        name: name of the repository.
        team: name of the team.
        project: project id.
        location: region of the repository: the cluster's, so that pulls have no egress cost.
        keep: whether it remains when the stack is destroyed.
        members: declared members, who may push.
        node_accounts: e-mail addresses of service accounts with which nodes pull images, except a created
            cluster's, which may read every repository of the project.
        labels: billing labels.
    """

    declared: Declared
    name: str
    team: str
    project: str
    location: str
    keep: bool
    members: tuple[str, ...]
    node_accounts: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])


class Registry(pulumi.ComponentResource):
    """A Docker repository of Artifact Registry; its grants are limited to the repository.

    Deleting a repository deletes its images. Sources: Artifact Registry docs, access-control and
    repositories/cleanup-policy (2026); pulumi-gcp 10.2.0, artifactregistry.Repository.
    """

    def __init__(self, name: str, args: RegistryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:Registry", name, {}, opts)
        days = args.declared.delete_untagged_days
        repository = artifactregistry.Repository(
            f"{name}-repository",
            repository_id=args.name,
            project=args.project,
            location=args.location,
            format="DOCKER",
            description=f"Images of team {args.team}",
            docker_config={"immutable_tags": args.declared.immutable_tags},
            cleanup_policies=[
                {
                    "id": "delete-untagged",
                    "action": "DELETE",
                    "condition": {"tag_state": "UNTAGGED", "older_than": f"{days * _DAY_SECONDS}s"},
                }
            ]
            if days is not None
            else None,
            labels=dict(args.labels),
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=args.keep),
        )
        grants = [(f"{name}-push-{name_of(member)}", "writer", principal(member)) for member in args.members]
        grants += [
            (f"{name}-pull-{email}", "reader", f"serviceAccount:{email}") for email in args.node_accounts
        ]
        for grant, role, member in grants:
            artifactregistry.RepositoryIamMember(
                grant,
                repository=repository.name,
                location=args.location,
                project=args.project,
                role=f"roles/artifactregistry.{role}",
                member=member,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
