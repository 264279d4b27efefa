"""Google Cloud resources of a cluster's teams: the identity, bucket, volume and registry of each, and the
bucket for pipelines' artifacts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pulumi
from pulumi_gcp import artifactregistry, compute, container, filestore, serviceaccount, storage

from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.physical_names import BUCKET, FILESTORE, SERVICE_ACCOUNT, fitting
from ebbtide.declaration.model.pool import DEFAULT_ACCOUNT
from ebbtide.declaration.model.tenancy import Registry as Declared
from ebbtide.declaration.model.tenancy import Team, name_of, principal
from ebbtide.placement.derive import ACCOUNT, BUCKET_DRIVERS, bucket_name, keeps_registry, registry_name
from ebbtide.values.cloud_kind import CloudKind

from ..addons.add_on import ArtifactStore
from ..addons.teams import (
    CreateTeamResources,
    SharedDisk,
    TeamResources,
    adopted_accounts,
    fixed_registry_key,
    registry_inputs,
)
from ..topology import of_team
from .topology import Topology

_FILESTORE_GIB = 1024
_BUCKET_SAYS_GIB = 1024
_OBJECTS = "roles/storage.objectUser"
"""Storage Object User: listing, reading and writing objects, without the bucket's settings and grants."""

_DAY_SECONDS = 24 * 60 * 60

IDENTITY = "iam.gke.io/gcp-service-account"
"""Annotation of a Kubernetes service account with the Google Cloud service account that it acts as."""


def _zone(declaration: Declaration) -> str | None:
    """Return a zone where the cluster has nodes: its own, or the first that a pool declares."""
    if declaration.site.is_zonal:
        return declaration.cloud.location
    return next((zone for pool in declaration.pools for zone in pool.zones), None)


def _file_clients(declaration: Declaration, topology: Topology) -> "Clients":
    """Return the cluster's nodes as clients of file shares: the kubelet mounts them, from a node's address.

    An existing cluster or subnet is looked up.
    """
    cloud = topology.cloud
    if topology.cluster is not None:
        vpc = topology.cluster.resource.network
        if cloud.network.subnet is None:
            return Clients(network=vpc.apply(_last), addresses=cloud.network.nodes)
        subnet = pulumi.Output.from_input(cloud.network.subnet)
    else:
        existing = container.get_cluster_output(
            name=declaration.physical_name,
            location=cloud.location,
            project=cloud.project,
            opts=pulumi.InvokeOutputOptions(parent=topology),
        )
        vpc, subnet = existing.network, existing.subnetwork
    nodes = compute.get_subnetwork_output(
        name=subnet.apply(_last),
        project=subnet.apply(lambda path: _project(path) or cloud.project),
        region=declaration.site.region,
        opts=pulumi.InvokeOutputOptions(parent=topology),
    )
    return Clients(network=vpc.apply(_last), addresses=nodes.ip_cidr_range)


def _project(path: str | None) -> str | None:
    """Return the project of a resource's path, that of the host if the VPC is shared; None for a name."""
    found = re.search("projects/([^/]+)/", path or "")
    return found[1] if found else None


def _last(path: str | None) -> str:
    """Return the name of a resource; empty from a unit test's mocks."""
    return (path or "").rpartition("/")[2]


def team_resources(
    topology: Topology, declaration: Declaration, artifacts: ArtifactStore | None
) -> CreateTeamResources:
    """Return a function that creates a team's identity, bucket and volume in the topology; `artifacts` has
    the identity that pipeline steps already act as."""
    steps_act_as = artifacts.identity[IDENTITY] if artifacts else ""

    def create(team: Team) -> TeamResources:
        if team.registry is not None:
            name = f"{declaration.name}-team-{team.stored_as}-images"
            Registry(name, team, team.registry, topology, declaration)
        name = f"{declaration.name}-team-{team.name}"
        return Tenant(name, team, topology, declaration, steps_act_as).resources

    return create


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of file systems.

    Attributes:
        network: name of their VPC.
        addresses: range of their addresses (CIDR).
    """

    network: pulumi.Input[str]
    addresses: pulumi.Input[str]


class Tenant(pulumi.ComponentResource):
    """A service account for the team's pods, by Workload Identity, without any key.

    It may only use the team's bucket. Storage and its grants have the storage's name, so that a renamed
    team keeps them: a grant under another name would be created, and its equal then deleted. Sources: GKE
    docs, workload-identity and cloud-storage-fuse-csi-driver (2026); Filestore docs, accessing-fileshares
    (2026).
    """

    resources: TeamResources

    def __init__(
        self,
        name: str,
        team: Team,
        topology: Topology,
        declaration: Declaration,
        pipelines: pulumi.Input[str] = "",
    ) -> None:
        """Create the resources of a team.

        Args:
            pipelines: e-mail of the service account that pipeline steps already act as; empty if there is
                none. It also gets access to the bucket, if the team uses the namespace of Kubeflow Pipelines.
        """
        super().__init__("ebbtide:gke:Tenant", name, {}, pulumi.ResourceOptions(parent=topology))
        inside = pulumi.ResourceOptions(parent=self)
        cluster, project = declaration.name, topology.cloud.project
        stored = f"{cluster}-team-{team.stored_as}"
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=fitting(f"{cluster}-team-{team.name}", SERVICE_ACCOUNT),
            display_name=f"Team {team.name} on cluster {cluster}",
            project=project,
            opts=inside,
        )
        steps = adopted_accounts(team)
        adopted = () if pipelines else steps
        grants: list[pulumi.Resource] = [
            _acting(f"{name}-{role}", account, f"{team.namespace_name}/{subject}", topology, self)
            for role, subject in (("workload", ACCOUNT), *((item, item) for item in adopted))
        ]
        bucket = _bucket(stored, team, topology, declaration, self) if team.has_bucket else None
        writers: dict[str, pulumi.Input[str]] = {"writes": account.member}
        if pipelines and steps:
            writers["pipelines-write"] = pulumi.Output.concat("serviceAccount:", pipelines)
        if bucket is not None:
            for member in team.members:
                storage.BucketIAMMember(
                    f"{stored}-bucket-{name_of(member)}",
                    bucket=bucket.name,
                    role=_OBJECTS,
                    member=principal(member),
                    opts=inside,
                )
            grants += [
                storage.BucketIAMMember(
                    f"{stored}-{role}",
                    bucket=bucket.name,
                    role=_OBJECTS,
                    member=member,
                    opts=inside,
                )
                for role, member in writers.items()
            ]
        self.resources = TeamResources(
            annotations={IDENTITY: account.email},
            bucket=bucket.url if bucket else None,
            disk=self._disk(stored, team, topology, declaration, bucket),
            grants=tuple(grants),
            adopted=adopted,
        )
        self.register_outputs({"email": account.email})

    def _disk(
        self,
        name: str,
        team: Team,
        topology: Topology,
        declaration: Declaration,
        bucket: "storage.Bucket | None",
    ) -> SharedDisk | None:
        volume = team.volume
        if volume is None:
            return None
        if bucket is not None and volume.kind == "bucket":
            return SharedDisk(
                source={"csi": {"driver": BUCKET_DRIVERS[CloudKind.GKE], "volumeHandle": bucket.name}},
                size_gib=_BUCKET_SAYS_GIB,
                mount_options=("implicit-dirs",),
            )
        clients = _file_clients(declaration, topology)
        size = volume.size_gib or _FILESTORE_GIB
        # By default, all addresses of the VPC reach it, also those of other clusters and of pods. Basic tiers
        # need a client with read-write access and without root squash (Filestore docs, access-control and
        # creating-instances, 2025-09).
        nodes: filestore.InstanceFileSharesNfsExportOptionArgsDict = {
            "ip_ranges": [clients.addresses],
            "access_mode": "READ_WRITE",
            "squash_mode": "NO_ROOT_SQUASH",
        }
        instance = filestore.Instance(
            f"{name}-files",
            name=fitting(f"{declaration.name}-{team.stored_as}", FILESTORE),
            project=topology.cloud.project,
            location=_zone(declaration),
            tier="BASIC_HDD",
            file_shares={"name": "shared", "capacity_gb": size, "nfs_export_options": [nodes]},
            networks=[{"network": clients.network, "modes": ["MODE_IPV4"]}],
            labels=dict(of_team(topology.labels, team.name)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        server = instance.networks.apply(lambda networks: (networks[0].ip_addresses or [""])[0])
        return SharedDisk(source={"nfs": {"server": server, "path": "/shared"}}, size_gib=size)


def _acting(
    name: str,
    account: "serviceaccount.Account",
    used_by: str,
    topology: Topology,
    parent: pulumi.Resource,
) -> pulumi.Resource:
    """Let a Kubernetes service account, as `namespace/name`, act as an account, by Workload Identity: once
    the cluster exists, as a project's first creates its workload identity pool."""
    cluster = topology.cluster.resource if topology.cluster else None
    return serviceaccount.IAMMember(
        name,
        service_account_id=account.name,
        role="roles/iam.workloadIdentityUser",
        member=f"serviceAccount:{topology.cloud.project}.svc.id.goog[{used_by}]",
        opts=pulumi.ResourceOptions(parent=parent, depends_on=cluster),
    )


def _bucket(
    name: str, team: Team, topology: Topology, declaration: Declaration, parent: Tenant
) -> "storage.Bucket":
    """Create a private bucket in the cluster's region, so that reading from it costs nothing."""
    declared = team.bucket.keep if team.bucket else None
    keep = not declaration.is_ephemeral if declared is None else declared
    grants = topology.key_grants.buckets if topology.key_grants else ()
    return storage.Bucket(
        f"{name}-bucket",
        name=bucket_name(declaration, team),
        project=topology.cloud.project,
        location=declaration.site.region.upper(),
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        force_destroy=not keep,
        encryption=bucket_encryption(topology.cloud.keys.buckets),
        labels=dict(of_team(topology.labels, team.name)),
        opts=pulumi.ResourceOptions(parent=parent, retain_on_delete=keep, depends_on=grants),
    )


class Registry(pulumi.ComponentResource):
    """A Docker repository of Artifact Registry; its grants are limited to the repository.

    Deleting a repository deletes its images. Sources: Artifact Registry docs, access-control and
    repositories/cleanup-policy (2026); pulumi-gcp 10.2.0, artifactregistry.Repository.
    """

    def __init__(
        self, name: str, team: Team, declared: Declared, topology: Topology, declaration: Declaration
    ) -> None:
        cloud, key_grants = topology.cloud, topology.key_grants
        fixed = pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions(parent=topology), fixed_registry_key(CloudKind.GKE)
        )
        super().__init__("ebbtide:gke:Registry", name, registry_inputs(cloud.keys.registries), fixed)
        days = declared.delete_untagged_days
        repository = artifactregistry.Repository(
            f"{name}-repository",
            repository_id=registry_name(declaration, team),
            project=cloud.project,
            location=declaration.site.region,
            format="DOCKER",
            description=f"Images of team {team.name}",
            docker_config={"immutable_tags": declared.immutable_tags},
            cleanup_policies=[
                {
                    "id": "delete-untagged",
                    "action": "DELETE",
                    "condition": {"tag_state": "UNTAGGED", "older_than": f"{days * _DAY_SECONDS}s"},
                }
            ]
            if days is not None
            else None,
            kms_key_name=cloud.keys.registries,
            labels=dict(of_team(topology.labels, team.name)),
            opts=pulumi.ResourceOptions(
                parent=self,
                retain_on_delete=keeps_registry(declaration, team),
                depends_on=key_grants.registries if key_grants else (),
            ),
        )
        # The nodes' own account may read every repository of the project. The e-mail of the project's default
        # account has the project's number, and is not known here.
        accounts = dict.fromkeys(
            pool.service_account
            for pool in declaration.pools
            if pool.service_account and pool.service_account != DEFAULT_ACCOUNT
        )
        grants = [(f"{name}-push-{name_of(member)}", "writer", principal(member)) for member in team.members]
        grants += [(f"{name}-pull-{email}", "reader", f"serviceAccount:{email}") for email in accounts]
        for grant, role, member in grants:
            artifactregistry.RepositoryIamMember(
                grant,
                repository=repository.name,
                location=declaration.site.region,
                project=cloud.project,
                role=f"roles/artifactregistry.{role}",
                member=member,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def bucket_encryption(key: str | None) -> "storage.BucketEncryptionArgsDict | None":
    """Return the encryption of a bucket whose new objects have a key of Cloud KMS; None for Google's."""
    return {"default_kms_key_name": key} if key else None


class ArtifactBucket(pulumi.ComponentResource):
    """A private bucket for pipelines' artifacts, and a service account that Kubernetes service accounts act
    as through Workload Identity. No key is created.

    On GKE only: the launcher of Kubeflow Pipelines supports gs, s3 and minio (kubeflow/pipelines 2.17.0,
    backend/src/v2/objectstore/config.go), not Azure's storage. Sources: GKE docs, workload-identity (2026);
    pulumi-gcp 10.2.
    """

    store: ArtifactStore
    """The bucket, as Kubeflow Pipelines is configured with it."""

    def __init__(
        self, name: str, topology: Topology, declaration: Declaration, workers: Iterable[str]
    ) -> None:
        super().__init__("ebbtide:addons:ArtifactBucket", name, {}, pulumi.ResourceOptions(parent=topology))
        inside, cloud = pulumi.ResourceOptions(parent=self), topology.cloud
        grants = topology.key_grants.buckets if topology.key_grants else ()
        bucket = storage.Bucket(
            f"{name}-bucket",
            # Names of buckets are global.
            name=fitting(f"{cloud.project}-{declaration.name}-pipelines", BUCKET),
            project=cloud.project,
            location=declaration.site.region,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            # Of a permanent cluster, a destroy stops until the bucket is empty.
            force_destroy=declaration.is_ephemeral,
            encryption=bucket_encryption(cloud.keys.buckets),
            labels=dict(topology.labels),
            opts=pulumi.ResourceOptions(parent=self, depends_on=grants),
        )
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=fitting(f"{declaration.name}-kfp", SERVICE_ACCOUNT),
            display_name=f"Pipelines of cluster {declaration.name}",
            project=cloud.project,
            opts=inside,
        )
        use = storage.BucketIAMMember(
            f"{name}-use", bucket=bucket.name, role=_OBJECTS, member=account.member, opts=inside
        )
        acting = [
            _acting(f"{name}-{worker}", account, f"{PIPELINES_NAMESPACE}/{worker}", topology, self)
            for worker in workers
        ]
        root = pulumi.Output.format("gs://{0}/v2/artifacts", bucket.name)
        self.store = ArtifactStore(
            root=root,
            identity={IDENTITY: account.email},
            grants=(use, *acting),
        )
        self.register_outputs({"root": root})


def artifacts(topology: Topology, declaration: Declaration) -> ArtifactStore | None:
    """Create the bucket for pipelines' artifacts; None if they are stored in the cluster."""
    pipelines = declaration.addons.installed_pipelines
    if pipelines is None or pipelines.artifacts != "bucket":
        return None
    from ..addons.pipelines import WORKERS  # noqa: PLC0415 - with the add-on alone

    return ArtifactBucket(f"{declaration.name}-artifacts", topology, declaration, WORKERS).store
