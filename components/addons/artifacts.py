"""A bucket for what pipelines produce, and the identity that may use it.

Of the two clouds, the launcher of Kubeflow Pipelines knows this one's buckets alone: gs, s3 and minio
(kubeflow/pipelines 2.17.0, backend/src/v2/objectstore/config.go).
"""

from dataclasses import dataclass, field

import pulumi
from pulumi_gcp import serviceaccount, storage

from ebbtide.model.physical_names import BUCKET, SERVICE_ACCOUNT, fitting

from ..ownership import Labels
from .artifact_store import ArtifactStore

IDENTITY = "iam.gke.io/gcp-service-account"
"""Annotation of a service account of Kubernetes with the one of Google Cloud that it acts as."""
_ROLE = "roles/storage.objectUser"
"""To list, read, write and delete objects, and no more: not the bucket itself, nor who may use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactBucketArgs:
    """Arguments of a bucket for artifacts.

    Attributes:
        cluster: name of the cluster; bucket and identity are called after it.
        project: project id; the bucket's name begins with it, since bucket names are the world's.
        region: where the bucket is: the cluster's region, so that reading costs nothing.
        accounts: service accounts of Kubernetes that use it, as `namespace/name`: those of
            `pipelines_objects.WORKERS`.
        goes_with_contents: whether it is deleted with what is in it: of an ephemeral cluster. That of a
            permanent one is not deleted while anything is in it, and a destroy stops there.
        labels: labels of the bill.
        depends_on: the cluster, with which the project's pool of workload identities comes.
    """

    cluster: str
    project: str
    region: str
    accounts: tuple[str, ...]
    goes_with_contents: bool
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])
    depends_on: tuple[pulumi.Resource, ...] = ()


class ArtifactBucket(pulumi.ComponentResource):
    """A private bucket, and a service account that Kubernetes' own act as through Workload Identity.

    No key exists. Sources: GKE docs, workload-identity (2026); pulumi-gcp 10.2.
    """

    store: ArtifactStore
    """As Kubeflow Pipelines is told of it."""

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
            force_destroy=args.goes_with_contents,
            labels=dict(args.labels),
            opts=inside,
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
