"""A bucket for pipelines' artifacts, and the identity that may use it.

On GKE only: the launcher of Kubeflow Pipelines supports gs, s3 and minio (kubeflow/pipelines 2.17.0,
backend/src/v2/objectstore/config.go), not Azure's storage.
"""

from dataclasses import dataclass, field

import pulumi
from pulumi_gcp import serviceaccount, storage

from ebbtide.declaration.model.cloud import Gke
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.physical_names import BUCKET, SERVICE_ACCOUNT, fitting

from ..addons.add_on import ArtifactStore
from ..labels_and_kubeconfig import Labels
from .topology import Topology

IDENTITY = "iam.gke.io/gcp-service-account"
"""Annotation of a Kubernetes service account with the Google Cloud service account that it acts as."""
_ROLE = "roles/storage.objectUser"
"""List, read, write and delete objects; no access to the bucket itself or its IAM policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactBucketArgs:
    """Arguments of a bucket for artifacts.

    Attributes:
        cluster: name of the cluster, part of the names of bucket and identity.
        project: the bucket's name begins with it, since bucket names are global.
        region: the cluster's, so that reading costs nothing.
        accounts: Kubernetes service accounts that use it, as `namespace/name`: those of
            `pipelines.WORKERS`.
        key: name of the Cloud KMS key for new objects; None for Google's.
        force_destroy: whether a destroy deletes a bucket with contents: true for an ephemeral cluster.
            For a permanent one, a destroy stops until the bucket is empty.
        key_grants: prerequisites of a bucket with `key`.
        depends_on: the cluster, which creates the project's workload identity pool.
    """

    cluster: str
    project: str
    region: str
    accounts: tuple[str, ...]
    force_destroy: bool
    key: str | None = None
    key_grants: tuple[pulumi.Resource, ...] = ()
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])
    depends_on: tuple[pulumi.Resource, ...] = ()


def bucket_encryption(key: str | None) -> "storage.BucketEncryptionArgsDict | None":
    """Return the encryption of a bucket whose new objects have a key of Cloud KMS; None for Google's."""
    return {"default_kms_key_name": key} if key else None


class ArtifactBucket(pulumi.ComponentResource):
    """A private bucket, and a service account that Kubernetes service accounts act as through Workload
    Identity.

    No key is created. Sources: GKE docs, workload-identity (2026); pulumi-gcp 10.2.
    """

    store: ArtifactStore
    """The bucket, as Kubeflow Pipelines is configured with it."""

    def __init__(
        self, name: str, args: ArtifactBucketArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ebbtide:addons:ArtifactBucket", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        bucket = storage.Bucket(
            f"{name}-bucket",
            name=fitting(f"{args.project}-{args.cluster}-pipelines", BUCKET),
            project=args.project,
            location=args.region,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            force_destroy=args.force_destroy,
            encryption=bucket_encryption(args.key),
            labels=dict(args.labels),
            opts=pulumi.ResourceOptions(parent=self, depends_on=args.key_grants),
        )
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=fitting(f"{args.cluster}-kfp", SERVICE_ACCOUNT),
            display_name=f"Pipelines of cluster {args.cluster}",
            project=args.project,
            opts=inside,
        )
        use = storage.BucketIAMMember(
            f"{name}-use", bucket=bucket.name, role=_ROLE, member=account.member, opts=inside
        )
        acting = [
            serviceaccount.IAMMember(
                f"{name}-{used_by.rpartition('/')[2]}",
                service_account_id=account.name,
                role="roles/iam.workloadIdentityUser",
                member=f"serviceAccount:{args.project}.svc.id.goog[{used_by}]",
                opts=pulumi.ResourceOptions(parent=self, depends_on=args.depends_on),
            )
            for used_by in args.accounts
        ]
        root = pulumi.Output.format("gs://{0}/v2/artifacts", bucket.name)
        self.store = ArtifactStore(
            root=root,
            identity={IDENTITY: account.email},
            grants=(use, *acting),
        )
        self.register_outputs({"root": root})


def artifacts(topology: Topology, declaration: Declaration, cloud: Gke) -> ArtifactStore | None:
    """Create the bucket for pipelines' artifacts; None if they are stored in the cluster."""
    pipelines = declaration.addons.installed_pipelines
    if pipelines is None or pipelines.artifacts != "bucket":
        return None
    from ..addons.pipelines import NAMESPACE, WORKERS  # noqa: PLC0415 - with the add-on alone

    args = ArtifactBucketArgs(
        cluster=declaration.name,
        project=cloud.project,
        region=declaration.site.region,
        accounts=tuple(f"{NAMESPACE}/{account}" for account in WORKERS),
        force_destroy=declaration.is_ephemeral,
        key=cloud.keys.buckets,
        key_grants=topology.key_grants.buckets if topology.key_grants else (),
        labels=topology.labels,
        depends_on=(topology.cluster.resource,) if topology.cluster else (),
    )
    inside = pulumi.ResourceOptions(parent=topology)
    return ArtifactBucket(f"{declaration.name}-artifacts", args, inside).store
