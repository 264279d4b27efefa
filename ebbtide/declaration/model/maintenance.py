"""Maintenance windows and exclusions of a cluster."""

from datetime import date
from typing import Literal

from pydantic import Field

from ebbtide.declaration.model.base import Converted, Declared, Duration, Name, default

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

DAYS: tuple[Day, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""The days of a week, in order."""


class MaintenanceWindow(Declared):
    """The hours in which upgrades are allowed."""

    days: Converted[tuple[Day, ...], list[Day] | tuple[Day, ...]] = default(())
    """Days on which the window begins, UTC. Default: every day. AKS: one day, or every day."""
    start: Name
    """Start time, UTC: `"02:00"`."""
    duration: Converted[Duration, str]
    """Duration, 4 to 24 hours: `6h`. GKE requires 48 hours for upgrades in any 92 days, without those that
    exclusions cover."""


class MaintenanceExclusion(Declared):
    """Days without upgrades, even within the window."""

    name: Name
    """Name, used by GKE only."""
    start: date
    """First day, UTC: `"2026-12-20"`."""
    end: date
    """Last day, UTC."""
    scope: Literal["no-upgrades", "no-minor-upgrades", "no-minor-or-node-upgrades"] = "no-upgrades"
    """GKE: the excluded upgrades. `no-upgrades` lasts 90 days at most, and is allowed three times. AKS
    supports `no-upgrades` only."""


class Maintenance(Declared):
    """Times of automatic upgrades of the cluster and its nodes. Urgent repairs ignore them."""

    window: MaintenanceWindow
    exclusions: Converted[
        tuple[MaintenanceExclusion, ...], list[MaintenanceExclusion] | tuple[MaintenanceExclusion, ...]
    ] = Field(default=())  # pyright: ignore[reportAssignmentType] # as `default`
    """Periods without upgrades, or without some kinds of upgrades."""
