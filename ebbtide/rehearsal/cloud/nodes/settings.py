"""How long things take in node pools, and what holds a node."""

from dataclasses import dataclass
from typing import Final, Self

_REACTION: Final = 8  # seconds of the wall clock, on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a cloud does by default. Simulated seconds, unless said.

    Where the source is the cluster autoscaler, it is the table of parameters in its FAQ
    (kubernetes/autoscaler, cluster-autoscaler/FAQ.md, 2026); AKS documents the same defaults for its
    autoscaler profile.

    Attributes:
        startup_seconds: from asking for a node until it is ready. An assumption: no cloud promises a time.
        driver_seconds: from a node's being ready, with all that its accelerators need, until they are seen.
            An assumption likewise.
        idle_seconds: how long a node is not needed before it goes (`scale-down-unneeded-time`).
        settle_seconds: no node goes so long after one was added (`scale-down-delay-after-add`).
        backoff_seconds: how long a pool is let alone whose nodes did not come
            (`initial-node-group-backoff-duration`; a ComputeClass's cooldown is the same, GKE docs,
            about-custom-compute-classes, 2026).
        utilization: a node with a larger share of it requested is never removed
            (`scale-down-utilization-threshold`).
        eviction_seconds: how long pods of a node that goes have to end (`max-graceful-termination-sec`).
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
        local_storage_holds: whether a pod with an emptyDir or hostPath holds its node. Not on AKS
            (`skip-nodes-with-local-storage` is false there), nor on GKE since 1.22.
        system_pods_hold: whether a pod of kube-system without a disruption budget does
            (`skip-nodes-with-system-pods`).
        step_seconds: of the wall clock: how often the cloud looks at what is to be done.
    """

    startup_seconds: float = 90
    driver_seconds: float = 20
    idle_seconds: float = 600
    settle_seconds: float = 600
    backoff_seconds: float = 300
    utilization: float = 0.5
    eviction_seconds: float = 600
    drain_seconds: float = 3600
    dws_wait_seconds: float = 600
    booking_seconds: float = 600
    notice_seconds: float = 30
    pod_grace_seconds: float = 15
    local_storage_holds: bool = False
    system_pods_hold: bool = True
    step_seconds: float = 0.3

    @classmethod
    def at(cls, speed: float) -> Self:
        """The same where time runs so many times as fast. Where the cloud waits for Kubernetes or Kueue, that
        goes by the wall clock, and it waits long enough."""
        usual = cls()
        return cls(
            idle_seconds=max(usual.idle_seconds, _REACTION * speed),
            booking_seconds=max(usual.booking_seconds, 2 * _REACTION * speed),
        )
