"""What a cloud holds for a team, as the objects in the team's namespace refer to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from ebbtide.model import Team

ACCOUNT = "worker"
"""The service account that a team's work runs as, in its namespace."""

MOUNT_SECRET = "shared-mount"  # noqa: S105 - the name of a secret, not one
"""The secret in the team's namespace that a volume is mounted with, where it takes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDisk:
    """A shared volume.

    Attributes:
        source: the part of a PersistentVolume's spec that says where it is.
        size_gib: its size; of a bucket, which has none, what Kubernetes is told.
        mount_options: of the mount.
        credentials: data of the secret that mounts it, where it takes one.
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
    """

    annotations: Mapping[str, pulumi.Input[str]]
    bucket: pulumi.Input[str] | None = None
    disk: SharedDisk | None = None
    grants: tuple[pulumi.Resource, ...] = ()


MakeBacking = Callable[[Team], Backing]
"""Makes what a cloud holds for a team."""
