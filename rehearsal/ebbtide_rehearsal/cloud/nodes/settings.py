"""Durations of node pools' operations."""

from dataclasses import dataclass
from typing import Final, Self

_REACTION: Final = 8  # seconds of the wall clock, on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Durations by the clouds' defaults, in simulated seconds unless stated otherwise.

    Where the source is the cluster autoscaler, it is the table of parameters in its FAQ
    (kubernetes/autoscaler, cluster-autoscaler/FAQ.md, 2026). A cluster's own settings are not here:
    see `ebbtide_rehearsal.cloud.autoscaling`.

    Attributes:
        startup_seconds: from asking for a node until it is ready. An assumption: no cloud promises a time.
        driver_seconds: from a node's being ready, with all that its accelerators need, until they are seen.
            An assumption likewise.
        backoff_seconds: the first backoff of a node group whose nodes did not come
            (`initial-node-group-backoff-duration`; GKE's are the same, GoogleCloudPlatform/
            cluster-autoscaler@7d250507, pkg/backoff/gke_mig_backoff.go).
        longest_backoff_seconds: each further backoff is twice as long, and no longer than this
            (`max-node-group-backoff-duration`).
        backoff_reset_seconds: the time after a failure after which the next backoff is a first one
            (`node-group-backoff-reset-timeout`).
        cooldown_seconds: of a ComputeClass rule (there, NpcBackoffDuration).
        capacity_check_seconds: how long a request for a flex-start node that is not queued waits for stock,
            before it is cancelled and the pool backs off (GoogleCloudPlatform/cluster-autoscaler@7d250507,
            pkg/cloudprovider/gke/gke_cloud_provider_impl.go, DefaultFlexStartCapacityCheckWaitTime).
        drain_seconds: how long a deleted pool's pods are protected by their disruption budgets (GKE docs,
            node-pools; an hour at most).
        dws_wait_seconds: how long a request for queued nodes waits for capacity. An assumption: GKE says only
            that it may be days.
        booking_seconds: how long provisioned nodes wait for the pods of their request (GKE docs,
            provisioningrequest, 2026-04-08).
        notice_seconds: of the wall clock: from a spot node's notice to its end. 30 on both clouds (GKE docs,
            spot-vms; Azure docs, Scheduled Events, Preempt).
        pod_grace_seconds: of the wall clock: the most of it that GKE gives pods that are no system pods (GKE
            docs, spot-vms, 2026).
        least_idle_seconds: a node that is not needed stays so long, even if its cluster's settings say less.
            See `at`.
        step_seconds: of the wall clock: how often the cloud looks at what is to be done.
    """

    startup_seconds: float = 90
    driver_seconds: float = 20
    backoff_seconds: float = 300
    longest_backoff_seconds: float = 1800
    backoff_reset_seconds: float = 10800
    cooldown_seconds: float = 300
    capacity_check_seconds: float = 900
    drain_seconds: float = 3600
    dws_wait_seconds: float = 600
    booking_seconds: float = 600
    notice_seconds: float = 30
    pod_grace_seconds: float = 15
    least_idle_seconds: float = 0
    step_seconds: float = 0.3

    @classmethod
    def at(cls, speed: float) -> Self:
        """Return the settings for a clock that runs `speed` times as fast. Waits for Kubernetes or Kueue,
        which follow the wall clock, are made long enough."""
        usual = cls()
        return cls(
            least_idle_seconds=_REACTION * speed,
            booking_seconds=max(usual.booking_seconds, 2 * _REACTION * speed),
        )
