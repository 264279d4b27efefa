"""Maintenance configurations of AKS clusters."""

import re
from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.errors import invalid, missing
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, ResourceKind, Rule
from ebbtide_rehearsal.cloud.azure.values import inner

_NAMES: Final = ("default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule")
_TIME: Final = re.compile(r"\d{2}:\d{2}")
_DOCS: Final = "azure-aks-docs, planned-maintenance (2025-12)"
_LEAST: Final = 4
_MOST: Final = 24


def _name(request: Request) -> str | None:
    name = str(request.inputs["configName"])
    return None if name in _NAMES else invalid("configName", f"{name} is none of {', '.join(_NAMES)}")


def _window(request: Request) -> str | None:
    window: Mapping[str, Any] = inner(request.inputs, "maintenanceWindow")
    if not window:
        return missing("maintenanceWindow")
    if not _LEAST <= int(window.get("durationHours") or 0) <= _MOST:
        return invalid("maintenanceWindow.durationHours", f"it is not from {_LEAST} to {_MOST}")
    if not _TIME.fullmatch(str(window.get("startTime"))):
        return invalid("maintenanceWindow.startTime", "it is not of the form HH:mm")
    if len([schedule for schedule in inner(window, "schedule").values() if schedule]) != 1:
        return invalid("maintenanceWindow.schedule", "it needs exactly one schedule")
    return None


KINDS: Final = (
    ResourceKind(
        type="azure-native:containerservice:MaintenanceConfiguration",
        api_version="2025-09-01",
        parent=CLUSTER,
        rules=(
            Rule("a schedule by its name", _DOCS, _name),
            Rule("a window of 4 to 24 hours", _DOCS, _window),
        ),
    ),
)
