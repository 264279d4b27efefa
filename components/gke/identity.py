"""Access of nodes, of Google's service agents, and of the teams' members."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import pulumi
from pulumi_gcp import kms, organizations, projects, serviceaccount, storage

from ebbtide.declaration.model.cloud import Gke, GkeKeys
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.physical_names import SERVICE_ACCOUNT, fitting
from ebbtide.declaration.model.tenancy import name_of, principal

GRANTS = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Everything that a node needs: to write logs and metrics, and to pull images (GKE docs, hardening, 2026)."""

_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
_AGENTS = {"secrets": "container-engine-robot", "disks": "compute-system"}

ROLE = "roles/container.clusterViewer"
"""The least-privileged predefined role that reaches a control plane: `container.clusters.get` for the
kubeconfig and `container.clusters.connect` for the DNS endpoint; it can also list clusters and read the
project's name (iann0036/iam-dataset@2026-08-22, gcp/roles). Permissions inside the cluster come from the
namespace's role."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGrantsArgs:
    """Arguments of `KeyGrants`.

    Attributes:
        project: project id of the cluster and of the service agents.
        secrets: whether the stack creates the cluster, and so needs the key that encrypts its Secrets.
    """

    keys: GkeKeys
    project: str
    secrets: bool


class KeyGrants(pulumi.ComponentResource):
    """Cloud KMS CryptoKey Encrypter/Decrypter: for GKE's service agent on the key that encrypts Secrets, for
    Compute Engine's on the key of disks (GKE docs, encrypting-secrets and using-cmek, 2026), for Cloud
    Storage's and Artifact Registry's on those of buckets and registries.

    A project's last two agents are created by the first request for them (pulumi-gcp 10.2.0,
    storage.getProjectServiceAccount; Artifact Registry docs, ar-service-account, 2026). The agents are the
    project's: the grants remain when the stack is destroyed, since without them what is kept, and the
    clusters of other stacks under the same key, would not work.
    """

    secrets: tuple[pulumi.Resource, ...]
    """Prerequisites of the cluster."""
    disks: tuple[pulumi.Resource, ...]
    """Prerequisites of every node."""
    buckets: tuple[pulumi.Resource, ...]
    """Prerequisites of every bucket."""
    registries: tuple[pulumi.Resource, ...]
    """Prerequisites of every registry."""

    def __init__(self, name: str, args: KeyGrantsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:KeyGrants", name, {}, opts)
        invoke, keys = pulumi.InvokeOutputOptions(parent=self), args.keys

        @cache
        def number() -> pulumi.Output[str]:
            return organizations.get_project_output(project_id=args.project, opts=invoke).number

        def agent(data: str) -> pulumi.Output[str]:
            account = f"@{_AGENTS[data]}.iam.gserviceaccount.com"
            return pulumi.Output.concat("serviceAccount:service-", number(), account)

        def of_storage() -> pulumi.Output[str]:
            return storage.get_project_service_account_output(project=args.project, opts=invoke).member

        def of_registries() -> pulumi.Output[str]:
            return projects.ServiceIdentity(
                f"{name}-registries-agent",
                project=args.project,
                service="artifactregistry.googleapis.com",
                opts=pulumi.ResourceOptions(parent=self),
            ).member

        def granted(
            data: str, key: str | None, agent: Callable[[], pulumi.Output[str]]
        ) -> tuple[pulumi.Resource, ...]:
            if key is None:
                return ()
            grant = kms.CryptoKeyIAMMember(
                f"{name}-{data}",
                crypto_key_id=key,
                role=_ROLE,
                member=agent(),
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            )
            return (grant,)

        self.secrets = granted("secrets", keys.secrets if args.secrets else None, partial(agent, "secrets"))
        self.disks = granted("disks", keys.disks, partial(agent, "disks"))
        self.buckets = granted("buckets", keys.buckets, of_storage)
        self.registries = granted("registries", keys.registries, of_registries)
        self.register_outputs({})


def iam_condition(name: str, location: str) -> str:
    """Return the IAM condition that restricts a role to one cluster.

    IAM grants GKE's roles only on a project. The cluster's resource name, which the condition checks, has
    `zones` or `locations` in it (cloud.google.com/iam/docs/conditions-resource-attributes, 2026) and, through
    the DNS endpoint, the project's number instead of its id: only the end is the same in all of them.
    """
    return f'resource.name.endsWith("/{location}/clusters/{name}")'


class Members(pulumi.ComponentResource):
    """One grant for each member of any team. Other grants are not changed."""

    def __init__(self, name: str, declaration: Declaration, cloud: Gke, opts: pulumi.ResourceOptions) -> None:
        super().__init__("ebbtide:gke:Members", name, {}, opts)
        cluster = declaration.name
        for member in declaration.members:
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


def key_grants(name: str, cloud: Gke, inside: pulumi.ResourceOptions) -> KeyGrants | None:
    """Create the grants on the declared keys; return None if there are none."""
    keys = cloud.keys
    if not keys.grant or not (keys.secrets or keys.disks or keys.buckets or keys.registries):
        return None
    args = KeyGrantsArgs(keys=keys, project=cloud.project, secrets=cloud.existing is None)
    return KeyGrants(f"{name}-keys", args, inside)
