"""Google Cloud resources of a team: an identity, and the declared bucket and volume."""

from dataclasses import dataclass, field

import pulumi
from pulumi_gcp import filestore, serviceaccount, storage

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model import Team
from ebbtide.declaration.model.members import name_of, principal
from ebbtide.declaration.model.physical_names import FILESTORE, SERVICE_ACCOUNT, fitting
from ebbtide.placement.team_storage import ACCOUNT, BUCKET_DRIVERS

from ..addons.artifacts import IDENTITY
from ..addons.team_resources import SharedDisk, TeamResources, adopted_accounts
from ..ownership import Labels

_FILESTORE_GIB = 1024
_BUCKET_SAYS_GIB = 1024
_OBJECTS = "roles/storage.objectUser"
"""Storage Object User: listing, reading and writing objects, without the bucket's settings and grants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of file systems.

    Attributes:
        network: name of their VPC.
        addresses: range of their addresses (CIDR).
    """

    network: pulumi.Input[str]
    addresses: pulumi.Input[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantArgs:
    """Arguments of a tenant.

    Attributes:
        team: the team.
        cluster: name of the cluster, the prefix of names.
        project: project id.
        bucket: name of the bucket.
        region: region of the bucket: the cluster's, so that reading from it costs nothing.
        zone: zone of a file system; None if no pool declares one.
        clients: the nodes, which alone reach a file system; None without one.
        keep: default of whether a bucket remains when the stack is destroyed.
        labels: billing labels.
        pipelines: e-mail of the service account that pipeline steps already act as; empty if there is none.
            It also gets access to the bucket, if the team uses the namespace of Kubeflow Pipelines.
        depends_on: the cluster: a project's first cluster creates its workload identity pool.
    """

    team: Team
    cluster: str
    project: str
    bucket: str
    region: str
    zone: str | None
    clients: Clients | None
    keep: bool
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])
    pipelines: pulumi.Input[str] = ""
    depends_on: tuple[pulumi.Resource, ...] = ()


class Tenant(pulumi.ComponentResource):
    """A service account for the team's pods, by Workload Identity, without any key.

    It may only use the team's bucket. Storage and its grants have the storage's name, so that a renamed
    team keeps them: a grant under another name would be created, and its equal then deleted. Sources: GKE
    docs, workload-identity and cloud-storage-fuse-csi-driver (2026); Filestore docs, accessing-fileshares
    (2026).
    """

    resources: TeamResources

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:Tenant", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        stored = f"{args.cluster}-team-{args.team.stored_as}"
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=fitting(f"{args.cluster}-team-{args.team.name}", SERVICE_ACCOUNT),
            display_name=f"Team {args.team.name} on cluster {args.cluster}",
            project=args.project,
            opts=inside,
        )
        steps = adopted_accounts(args.team)
        adopted = () if args.pipelines else steps
        grants: list[pulumi.Resource] = [
            serviceaccount.IAMMember(
                f"{name}-{role}",
                service_account_id=account.name,
                role="roles/iam.workloadIdentityUser",
                member=f"serviceAccount:{args.project}.svc.id.goog[{args.team.namespace_name}/{subject}]",
                opts=pulumi.ResourceOptions(parent=self, depends_on=args.depends_on),
            )
            for role, subject in (("workload", ACCOUNT), *((item, item) for item in adopted))
        ]
        bucket = _bucket(stored, args, self) if args.team.has_bucket else None
        writers: dict[str, pulumi.Input[str]] = {"writes": account.member}
        if args.pipelines and steps:
            writers["pipelines-write"] = pulumi.Output.concat("serviceAccount:", args.pipelines)
        if bucket is not None:
            for member in args.team.members:
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
            disk=self._disk(stored, args, bucket),
            grants=tuple(grants),
            adopted=adopted,
        )
        self.register_outputs({"email": account.email})

    def _disk(self, name: str, args: TenantArgs, bucket: "storage.Bucket | None") -> SharedDisk | None:
        volume = args.team.volume
        if volume is None:
            return None
        if bucket is not None and volume.kind == "bucket":
            return SharedDisk(
                source={"csi": {"driver": BUCKET_DRIVERS[CloudKind.GKE], "volumeHandle": bucket.name}},
                size_gib=_BUCKET_SAYS_GIB,
                mount_options=("implicit-dirs",),
            )
        if args.clients is None:
            raise ValueError(f"Team {args.team.name} has a file system, and no clients of it are declared.")
        size = volume.size_gib or _FILESTORE_GIB
        # By default, all addresses of the VPC reach it, also those of other clusters and of pods. Basic tiers
        # need a client with read-write access and without root squash (Filestore docs, access-control and
        # creating-instances, 2025-09).
        nodes: filestore.InstanceFileSharesNfsExportOptionArgsDict = {
            "ip_ranges": [args.clients.addresses],
            "access_mode": "READ_WRITE",
            "squash_mode": "NO_ROOT_SQUASH",
        }
        instance = filestore.Instance(
            f"{name}-files",
            name=fitting(f"{args.cluster}-{args.team.stored_as}", FILESTORE),
            project=args.project,
            location=args.zone,
            tier="BASIC_HDD",
            file_shares={"name": "shared", "capacity_gb": size, "nfs_export_options": [nodes]},
            networks=[{"network": args.clients.network, "modes": ["MODE_IPV4"]}],
            labels=dict(args.labels),
            opts=pulumi.ResourceOptions(parent=self),
        )
        server = instance.networks.apply(lambda networks: (networks[0].ip_addresses or [""])[0])
        return SharedDisk(source={"nfs": {"server": server, "path": "/shared"}}, size_gib=size)


def _bucket(name: str, args: TenantArgs, parent: Tenant) -> "storage.Bucket":
    """Create a private bucket in the cluster's region."""
    declared = args.team.bucket.keep if args.team.bucket else None
    keep = args.keep if declared is None else declared
    return storage.Bucket(
        f"{name}-bucket",
        name=args.bucket,
        project=args.project,
        location=args.region.upper(),
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        force_destroy=not keep,
        labels=dict(args.labels),
        opts=pulumi.ResourceOptions(parent=parent, retain_on_delete=keep),
    )
