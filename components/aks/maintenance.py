"""Maintenance configurations of AKS."""

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import containerservice

from ebbtide.declaration.model.maintenance import DAYS, Maintenance

_SCHEDULES = ("aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule")
"""Names of AKS's maintenance configurations for Kubernetes versions and for node images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSchedulesArgs:
    """Arguments of `MaintenanceSchedules`.

    Attributes:
        maintenance: the declared window and exclusions.
        cluster: name of the cluster.
        resource_group: name of the cluster's resource group.
        deleted_with: the cluster.
    """

    maintenance: Maintenance
    cluster: pulumi.Input[str]
    resource_group: pulumi.Input[str]
    deleted_with: pulumi.Resource


class MaintenanceSchedules(pulumi.ComponentResource):
    """The same window for upgrades of Kubernetes and of node images; the channels determine which upgrades
    there are (azure-aks-docs, planned-maintenance, 2025-12)."""

    def __init__(
        self, name: str, args: MaintenanceSchedulesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ebbtide:aks:MaintenanceSchedules", name, {}, opts)
        for schedule in _SCHEDULES:
            containerservice.MaintenanceConfiguration(
                f"{name}-{schedule}",
                config_name=schedule,
                resource_name_=args.cluster,
                resource_group_name=args.resource_group,
                maintenance_window=_window(args.maintenance),
                opts=pulumi.ResourceOptions(parent=self, deleted_with=args.deleted_with),
            )
        self.register_outputs({})


def _window(declared: Maintenance) -> containerservice.MaintenanceWindowArgsDict:
    window = declared.window
    weekly = 0 < len(window.days) < len(DAYS)
    return {
        "start_time": window.start,
        "utc_offset": "+00:00",
        "duration_hours": int(window.duration.total_seconds()) // 3600,
        "schedule": {"weekly": {"day_of_week": window.days[0].capitalize(), "interval_weeks": 1}}
        if weekly
        else {"daily": {"interval_days": 1}},
        "not_allowed_dates": [
            {"start": exclusion.start.isoformat(), "end": exclusion.end.isoformat()}
            for exclusion in declared.exclusions
        ],
    }
