"""Where pods go: what a pool's nodes are marked with, and what a pod needs to land there.

The profile is all that workloads read of a cluster. It needs nothing but the standard library, so that a
pipeline author's machine needs neither Pulumi nor the declaration; it is derived from the declaration in
`ebbtide.placement.derive`.
"""

from ebbtide.placement.errors import ProfileError
from ebbtide.placement.profile import (
    AcceleratorProfile,
    LocalQueue,
    LogsProfile,
    MatchExpression,
    PoolProfile,
    Profile,
    QueueProfile,
    TaintProfile,
    Toleration,
)

__all__ = [
    "AcceleratorProfile",
    "LocalQueue",
    "LogsProfile",
    "MatchExpression",
    "PoolProfile",
    "Profile",
    "ProfileError",
    "QueueProfile",
    "TaintProfile",
    "Toleration",
]
