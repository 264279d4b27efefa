"""The autoscaler profile of a cluster."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.autoscaling import Autoscaling
from ebbtide_rehearsal.cloud.azure.errors import refused
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, Rule
from ebbtide_rehearsal.cloud.azure.values import inner

_PROFILE: Final = "autoScalerProfile"
_MINUTES: Final = re.compile(r"\d+m")
_NUMBER: Final = re.compile(r"\d+")
_EITHER: Final = re.compile(r"true|false")

_FORMATS: Final[Mapping[str, re.Pattern[str]]] = {
    "balanceSimilarNodeGroups": _EITHER,
    "expander": re.compile(r"least-waste|most-pods|priority|random"),
    "maxEmptyBulkDelete": _NUMBER,
    "maxGracefulTerminationSec": _NUMBER,
    "maxNodeProvisionTime": _MINUTES,
    "maxTotalUnreadyPercentage": _NUMBER,
    "newPodScaleUpDelay": re.compile(r"\d+[a-z]+"),
    "okTotalUnreadyCount": _NUMBER,
    "scaleDownDelayAfterAdd": _MINUTES,
    "scaleDownDelayAfterDelete": re.compile(r"\d+[ms]"),
    "scaleDownDelayAfterFailure": _MINUTES,
    "scaleDownUnneededTime": _MINUTES,
    "scaleDownUnreadyTime": _MINUTES,
    "scaleDownUtilizationThreshold": re.compile(r"0(\.\d+)?|1(\.0+)?"),
    "scanInterval": re.compile(r"\d+s?"),
    "skipNodesWithLocalStorage": _EITHER,
    "skipNodesWithSystemPods": _EITHER,
}
"""Formats of values (Microsoft.ContainerService 2025-09-01, ManagedClusterProperties.autoScalerProfile; a
delay in seconds as in Azure/AKS#2766)."""


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


def _values(request: Request) -> str | None:
    profile = inner(request.inputs, _PROFILE)
    for name, pattern in _FORMATS.items():
        value = profile.get(name)
        if value not in (None, "") and not pattern.fullmatch(str(value)):
            parameter = re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", name)
            return refused(
                "InvalidParameter",
                f"Invalid value specified for the cluster-autoscaler parameter '{parameter}'. Please refer "
                "to https://aka.ms/cluster-autoscaler for more details.",
                target=f"{_PROFILE}.{name}",
            )
    return None


RULES: Final = (Rule("an autoscaler profile that parses", "MicrosoftDocs/azure-docs#123289", _values),)
