"""Durations of the autoscaler, the ids of its messages, and the backoff of node groups.

Sources of message ids: GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/visibility/types/messages.go; of
backoff, with the same constants on both clouds: kubernetes/autoscaler@1959f5f6, utils/backoff/
exponential_backoff.go, and GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/backoff. A node group is a
scale set on AKS, and a pool's instance group in a zone on GKE. A success does not end a backoff; only time
does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

_REACTION: Final = 8  # seconds of the wall clock, on a busy machine
OUT_OF_RESOURCES: Final = "scale.up.error.out.of.resources"
QUOTA_EXCEEDED: Final = "scale.up.error.quota.exceeded"
SKIPPED: Final = "no.scale.up.mig.skipped"
FAILING_PREDICATE: Final = "no.scale.up.mig.failing.predicate"
SCALE_DOWN_DISABLED: Final = "no.scale.down.node.scale.down.disabled.annotation"
NO_PLACE: Final = "no.scale.down.node.no.place.to.move.pods"
NOT_SAFE_TO_EVICT: Final = "no.scale.down.node.pod.not.safe.to.evict.annotation"
NO_CONTROLLER: Final = "no.scale.down.node.pod.not.backed.by.controller"
SYSTEM_POD: Final = "no.scale.down.node.pod.kube.system.unmovable"
LOCAL_STORAGE: Final = "no.scale.down.node.pod.has.local.storage"
DISRUPTION_BUDGET: Final = "no.scale.down.node.pod.not.enough.pdb"
NOT_EVICTED: Final = "scale.down.error.failed.to.evict.pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Durations with the clouds' defaults, in simulated seconds unless stated otherwise.

    For the cluster autoscaler, the source is the table of parameters in its FAQ (kubernetes/autoscaler,
    cluster-autoscaler/FAQ.md, 2026). For a cluster's own settings see `Autoscaling`.

    Attributes:
        startup_seconds: from the request for a node until it is ready. An assumption: no cloud promises a
            time.
        driver_seconds: from a node's being ready, with the driver and device plugin of its accelerators,
            until the accelerators are allocatable. An assumption.
        backoff_seconds: first backoff of a node group whose nodes did not start
            (`initial-node-group-backoff-duration`; GKE's is the same, GoogleCloudPlatform/
            cluster-autoscaler@7d250507, pkg/backoff/gke_mig_backoff.go).
        longest_backoff_seconds: maximum backoff; each further backoff is twice as long
            (`max-node-group-backoff-duration`).
        backoff_reset_seconds: time after a failure until the next backoff is a first one again
            (`node-group-backoff-reset-timeout`).
        cooldown_seconds: cooldown of a ComputeClass rule (ibid., NpcBackoffDuration).
        capacity_check_seconds: time that a request for a flex-start node that is not queued waits for stock
            before it is cancelled and the pool backs off (GoogleCloudPlatform/cluster-autoscaler@7d250507,
            pkg/cloudprovider/gke/gke_cloud_provider_impl.go, DefaultFlexStartCapacityCheckWaitTime).
        drain_seconds: maximum time that disruption budgets protect a deleted pool's pods (GKE docs,
            node-pools: an hour).
        dws_wait_seconds: time that a request for queued nodes waits for capacity. An assumption: GKE only
            documents that it may be days.
        booking_seconds: time that provisioned nodes wait for the pods of their request (GKE docs,
            provisioningrequest, 2026-04-08).
        notice_seconds: wall clock: from a spot node's notice to its end. 30 on both clouds (GKE docs,
            spot-vms; Azure docs, Scheduled Events, Preempt).
        pod_grace_seconds: wall clock: maximum part of it that GKE gives to pods other than system pods (GKE
            docs, spot-vms, 2026).
        least_idle_seconds: minimum time that an unneeded node remains, even if its cluster's settings have
            less. See `at`.
        step_seconds: wall clock: interval of the control loop.
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
        which use the wall clock, are long enough."""
        usual = cls()
        return cls(
            least_idle_seconds=_REACTION * speed,
            booking_seconds=max(usual.booking_seconds, 2 * _REACTION * speed),
        )


def no_scale_up(reasons: Iterable[str], skipped: Iterable[str]) -> list[str]:
    """Return the ids of the reasons why no node group can grow for a pod.

    Args:
        reasons: reasons in the autoscaler's words.
        skipped: those for which a node group is not even considered.
    """
    passed_over = frozenset(skipped)
    return sorted({SKIPPED if reason in passed_over else FAILING_PREDICATE for reason in reasons})


@dataclass(frozen=True, slots=True)
class _Failure:
    """The last failed scale-up of a node group: its time and its backoff, in simulated seconds."""

    at: float
    seconds: float


class Backoff:
    """Backoffs of a cluster's node groups.

    Attributes:
        until: ends of the backoffs in simulated seconds, by node group.
    """

    def __init__(self, settings: NodeSettings) -> None:
        self.until: dict[str, float] = {}
        self._settings = settings
        self._failures: dict[str, _Failure] = {}

    def fail(self, group: str, now: float) -> float:
        """Back off a node group, twice as long as the last time unless that was long ago.

        Returns:
            The duration of the backoff in simulated seconds.
        """
        last, settings = self._failures.get(group), self._settings
        if last is None or now - last.at > settings.backoff_reset_seconds:
            seconds = settings.backoff_seconds
        elif self.until[group] >= now:
            seconds = last.seconds  # scale-ups that fail at the same time count once
        else:
            seconds = min(2 * last.seconds, settings.longest_backoff_seconds)
        self._failures[group] = _Failure(now, seconds)
        self.until[group] = max(now + seconds, self.until.get(group, 0))
        return seconds

    def cool(self, groups: Iterable[str], now: float) -> None:
        """Suspend the node groups of a ComputeClass rule for a fixed cooldown."""
        end = now + self._settings.cooldown_seconds
        for group in groups:
            self.until[group] = max(end, self.until.get(group, 0))
