"""A team's cloud resources, as referenced by the objects in its namespace."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from ebbtide.declaration.model import Team
from ebbtide.declaration.model.physical_names import SUBDOMAIN, fitting
from ebbtide.declaration.model.tenants import PIPELINES_NAMESPACE
from ebbtide.placement.team_storage import CLAIM

PIPELINES_ACCOUNT = "pipeline-runner"
"""The service account that steps of Kubeflow Pipelines run as by default (kubeflow/pipelines 2.17.0,
manifests/kustomize/base/pipeline/pipeline-runner-sa.yaml). The installation creates it."""

MOUNT_NAMESPACE = "kube-system"
"""Namespace of the Secrets with the credentials to mount volumes. A pod can mount any Secret of its own
namespace, so they are in one without members; a volume refers to a Secret of any namespace, which the kubelet
reads (Kubernetes docs, PersistentVolume, CSI, 2026)."""


def volume_name(cluster: str, team: Team) -> str:
    """Return the name of a team's volume, which is cluster-scoped, and of the Secret to mount it with."""
    return fitting(f"{cluster}-{team.name}-{CLAIM}", SUBDOMAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDisk:
    """A shared volume.

    Attributes:
        source: the volume source in a PersistentVolume's spec.
        size_gib: its size; a nominal one for a bucket, which has none.
        mount_options: of the mount.
        credentials: data of the Secret to mount it with, if it needs one.
    """

    source: Mapping[str, Any]
    size_gib: int
    mount_options: tuple[str, ...] = ()
    credentials: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResources:
    """A team's identity, bucket and volume in the cloud.

    Attributes:
        annotations: annotations that bind the service account in the cluster to the identity.
        bucket: address of the bucket; None if the team has no bucket.
        disk: the shared volume; None if the team has no volume.
        grants: prerequisites of the team's workloads.
        adopted: service accounts in the namespace that are not created with the team, and also get the
            annotations.
    """

    annotations: Mapping[str, pulumi.Input[str]]
    bucket: pulumi.Input[str] | None = None
    disk: SharedDisk | None = None
    grants: tuple[pulumi.Resource, ...] = ()
    adopted: tuple[str, ...] = ()


def adopted_accounts(team: Team) -> tuple[str, ...]:
    """Return service accounts, besides the team's, that act as its identity: that of pipeline steps, if the
    team uses the namespace of Kubeflow Pipelines."""
    return (PIPELINES_ACCOUNT,) if team.namespace_name == PIPELINES_NAMESPACE else ()


CreateTeamResources = Callable[[Team], TeamResources]
"""Creates the cloud resources of a team."""
