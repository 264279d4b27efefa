"""Placement of pods: labels and taints of a pool's nodes, and the fields of pods that match them.

Workloads read nothing of a cluster but the profile. It needs nothing but the standard library, so that a
pipeline author's machine needs neither Pulumi nor the declaration; it is derived from the declaration in
`ebbtide.placement.derive`.
"""

from ebbtide.placement.errors import ProfileError
from ebbtide.placement.profile import (
    AcceleratorProfile,
    LocalQueueProfile,
    LogsProfile,
    MatchExpression,
    NodeTaint,
    PoolProfile,
    Profile,
    QueueProfile,
    Toleration,
)

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
    "Toleration",
]
