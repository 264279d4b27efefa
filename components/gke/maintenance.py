"""GKE's maintenance policy from the declared maintenance."""

from datetime import UTC, date, datetime, time, timedelta

from pulumi_gcp import container

from ebbtide.declaration.model.maintenance import DAYS, Maintenance, MaintenanceExclusion

_MONDAY = date(2024, 1, 1)
"""A fixed past date from which windows recur: with the current date, every update would change the policy."""


def maintenance_policy(declared: Maintenance) -> container.ClusterMaintenancePolicyArgsDict:
    """Return the policy of a cluster: one window, and its exclusions."""
    window = declared.window
    days = [day for day in DAYS if day in window.days]
    first = _MONDAY + timedelta(days=DAYS.index(days[0]) if days else 0)
    start = datetime.combine(first, time.fromisoformat(window.start), UTC)
    listed = ",".join(day[:2].upper() for day in days)
    return {
        "recurring_window": {
            "start_time": _text(start),
            "end_time": _text(start + window.duration),
            "recurrence": f"FREQ=WEEKLY;BYDAY={listed}" if days else "FREQ=DAILY",
        },
        "maintenance_exclusions": [_exclusion(exclusion) for exclusion in declared.exclusions],
    }


def _exclusion(
    exclusion: MaintenanceExclusion,
) -> container.ClusterMaintenancePolicyMaintenanceExclusionArgsDict:
    after = exclusion.end + timedelta(days=1)
    return {
        "exclusion_name": exclusion.name,
        "start_time": _text(datetime.combine(exclusion.start, time(), UTC)),
        "end_time": _text(datetime.combine(after, time(), UTC)),
        "exclusion_options": {"scope": exclusion.scope.replace("-", "_").upper()},
    }


def _text(moment: datetime) -> str:
    """Format a time as RFC 3339 with `Z`; GKE returns any other form differently, so every update would show
    a change."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
