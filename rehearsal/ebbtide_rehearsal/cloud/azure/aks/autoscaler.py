"""The autoscaler profile of a cluster."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.autoscaling import Autoscaling
from ebbtide_rehearsal.cloud.azure.values import inner

_PROFILE: Final = "autoScalerProfile"


def _seconds(minutes: str) -> float:
    return int(minutes.removesuffix("m")) * 60


_READ: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "expander": ("expander", str),
    "scaleDownUnneededTime": ("idle_seconds", _seconds),
    "scaleDownDelayAfterAdd": ("delay_after_add_seconds", _seconds),
    "scaleDownUtilizationThreshold": ("utilization", float),
    "ignoreDaemonsetsUtilization": ("daemons_count", lambda ignored: not ignored),
    "maxGracefulTerminationSec": ("eviction_seconds", float),
    "skipNodesWithLocalStorage": ("skip_local_storage", lambda text: text == "true"),
    "skipNodesWithSystemPods": ("skip_system_pods", lambda text: text == "true"),
}
"""Settings that the fake cloud's autoscaler applies; it ignores the others."""


def autoscaling(state: Mapping[str, Any]) -> Autoscaling:
    """Return the settings of a cluster's autoscaler, with defaults for omitted ones."""
    profile = inner(state, _PROFILE)
    given: dict[str, Any] = {
        field: read(profile[name])
        for name, (field, read) in _READ.items()
        if profile.get(name) not in (None, "")
    }
    return Autoscaling(**given)
