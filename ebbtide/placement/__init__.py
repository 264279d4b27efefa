"""Placement of pods: labels and taints of a pool's nodes, and the fields of pods that match them.

Workloads know a cluster only by its profile. This package uses only the standard library, so that a pipeline
author needs neither Pulumi nor the declaration; `ebbtide.placement.derive` derives the profile from the
declaration.
"""

from ebbtide.placement.profile import (
    AcceleratorProfile,
    LocalQueueProfile,
    LogsProfile,
    MatchExpression,
    NodeTaint,
    PoolProfile,
    Profile,
    QueueProfile,
    TeamProfile,
    Toleration,
)
from ebbtide.placement.profile_sources import ProfileError

__all__ = [
    "AcceleratorProfile",
    "LocalQueueProfile",
    "LogsProfile",
    "MatchExpression",
    "NodeTaint",
    "PoolProfile",
    "Profile",
    "ProfileError",
    "QueueProfile",
    "TeamProfile",
    "Toleration",
]
