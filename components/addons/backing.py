"""A team's cloud resources, as the objects in its namespace refer to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from ebbtide.model import Team
from ebbtide.model.tenants import PIPELINES_NAMESPACE

ACCOUNT = "worker"
"""The service account that a team's work runs as, in its namespace."""

PIPELINES_ACCOUNT = "pipeline-runner"
"""The service account that steps of Kubeflow Pipelines run as, unless a run names another (kubeflow/pipelines
2.17.0, manifests/kustomize/base/pipeline/pipeline-runner-sa.yaml). It comes with the installation."""

MOUNT_SECRET = "shared-mount"  # noqa: S105 - the name of a secret, not one
"""The secret in the team's namespace that a volume is mounted with, where it takes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDisk:
    """A shared volume.

    Attributes:
        source: the volume source in a PersistentVolume's spec.
        size_gib: its size; of a bucket, which has none, a nominal one.
        mount_options: of the mount.
        credentials: data of the secret that mounts it, if it needs one.
    """

    source: Mapping[str, Any]
    size_gib: int
    mount_options: tuple[str, ...] = ()
    credentials: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """A team's identity, bucket and volume in the cloud.

    Attributes:
        annotations: what ties the service account in the cluster to the identity.
        bucket: address of the bucket; None where the team has none.
        disk: the shared volume; None where the team has none.
        grants: what work has to wait for.
        adopted: service accounts in the namespace that are not made with the team, and get the annotations
            as well.
    """

    annotations: Mapping[str, pulumi.Input[str]]
    bucket: pulumi.Input[str] | None = None
    disk: SharedDisk | None = None
    grants: tuple[pulumi.Resource, ...] = ()
    adopted: tuple[str, ...] = ()


def adopted_accounts(team: Team) -> tuple[str, ...]:
    """Service accounts that act as the team's identity besides its own: that of steps, if it works in the
    namespace of Kubeflow Pipelines."""
    return (PIPELINES_ACCOUNT,) if team.namespace_name == PIPELINES_NAMESPACE else ()


MakeBacking = Callable[[Team], Backing]
"""Makes what a cloud holds for a team."""
