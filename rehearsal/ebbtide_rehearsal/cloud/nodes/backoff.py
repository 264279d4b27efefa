"""Backoff of node groups after failed scale-ups (kubernetes/autoscaler@1959f5f6, utils/backoff/
exponential_backoff.go; GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/backoff).

Both clouds have the same constants. A node group is a scale set on AKS, and a pool's instance group in a zone
on GKE. A success does not end a backoff; only time does.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings


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
