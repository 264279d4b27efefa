"""Rules for maintenance windows and exclusions: limits of the clouds."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.maintenance import DAYS, MaintenanceExclusion, MaintenanceWindow
from ebbtide.declaration.model.rules.rule import cluster_rule
from ebbtide.values import durations

_PATH = "cloud.maintenance"
_GKE_DOCS = "GKE docs, maintenance-windows-and-exclusions (2026-06)"
_AKS_DOCS = "azure-aks-docs planned-maintenance.md (2025-12-19)"
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_LEAST, _MOST = timedelta(hours=4), timedelta(hours=24)
_ROLLING_DAYS = 92
_LEAST_OPEN = timedelta(hours=48)
_MOST_DAYS = 90
_MOST_EXCLUSIONS = 20
_MOST_OF_ALL_UPGRADES = 3
_NO_CLUSTER = "The cluster could not be created or changed."


@cluster_rule("valid maintenance window", f"{_GKE_DOCS}; {_AKS_DOCS}")
def _window(cluster: Cluster) -> Iterator[Fault]:
    maintenance = cluster.cloud.maintenance
    if maintenance is None:
        return
    window = maintenance.window
    if not _TIME.fullmatch(window.start):
        yield Fault(
            f"{_PATH}.window.start",
            f"{window.start} is not a time of day.",
            _NO_CLUSTER,
            'Write hours and minutes in UTC, in quotes: "02:00".',
        )
    if not _LEAST <= window.duration <= _MOST:
        yield Fault(
            f"{_PATH}.window.duration",
            f"A window of {durations.in_one_unit(window.duration)} must be from 4 to 24 hours long.",
            "The cloud would refuse the window, or not upgrade in it.",
            "Write 4h to 24h.",
        )
    for index, day in enumerate(window.days):
        if day in window.days[:index]:
            yield Fault(
                f"{_PATH}.window.days[{index}]",
                f"{day} is written twice.",
                "The second entry would have no effect.",
                "Remove one of the two.",
            )


@cluster_rule("AKS maintenance window days", _AKS_DOCS, CloudKind.AKS)
def _aks_window(cluster: Cluster) -> Iterator[Fault]:
    maintenance = cluster.cloud.maintenance
    if maintenance is None:
        return
    window = maintenance.window
    if len(set(window.days)) not in (0, 1, len(DAYS)):
        yield Fault(
            f"{_PATH}.window.days",
            f"AKS does not support a window on {len(set(window.days))} days of a week.",
            _NO_CLUSTER,
            "Write one day, or omit days for every day.",
        )
    if window.duration.seconds % 3600:
        yield Fault(
            f"{_PATH}.window.duration",
            f"AKS does not support a window of {durations.in_one_unit(window.duration)}, only whole hours.",
            _NO_CLUSTER,
            "Write whole hours, such as 4h.",
        )


def _open(window: MaintenanceWindow, ordinal: int, spans: list[tuple[int, int]]) -> timedelta:
    """Return the time for maintenance in the window that begins on a day: the pieces that no span of days
    covers, of at least four hours each. Days are ordinals."""
    day = date.fromordinal(ordinal)
    if window.days and DAYS[day.weekday()] not in window.days:
        return timedelta()
    start = datetime.combine(day, time.fromisoformat(window.start))
    pieces = [(start, start + window.duration)]
    for first, last in spans:
        begin, end = datetime.fromordinal(first), datetime.fromordinal(last + 1)
        pieces = [
            part
            for left, right in pieces
            for part in ((left, min(right, begin)), (max(left, end), right))
            if part[0] < part[1]
        ]
    return sum((right - left for left, right in pieces if right - left >= _LEAST), timedelta())


def _of_all_upgrades(cluster: Cluster) -> list[tuple[int, MaintenanceExclusion]]:
    """Return the exclusions of all upgrades with their index, except those that end before they begin."""
    exclusions = cluster.cloud.maintenance.exclusions if cluster.cloud.maintenance else ()
    return [
        (index, exclusion)
        for index, exclusion in enumerate(exclusions)
        if exclusion.scope == "no-upgrades" and exclusion.start <= exclusion.end
    ]


@cluster_rule("valid maintenance exclusion dates", f"{_GKE_DOCS}; {_AKS_DOCS}")
def _exclusions(cluster: Cluster) -> Iterator[Fault]:
    exclusions = cluster.cloud.maintenance.exclusions if cluster.cloud.maintenance else ()
    names = [exclusion.name for exclusion in exclusions]
    for index, exclusion in enumerate(exclusions):
        path = f"{_PATH}.exclusions[{index}]"
        if exclusion.end < exclusion.start:
            yield Fault(
                f"{path}.end",
                f"The exclusion ends on {exclusion.end}, before it begins on {exclusion.start}.",
                _NO_CLUSTER,
                "Write its last day.",
            )
        if exclusion.name in names[:index]:
            yield Fault(
                f"{path}.name",
                f"Two exclusions have the name {exclusion.name}.",
                "One would replace the other.",
                "Write another name.",
            )


@cluster_rule("GKE maintenance exclusion limits", _GKE_DOCS, CloudKind.GKE)
def _gke_exclusions(cluster: Cluster) -> Iterator[Fault]:
    exclusions = cluster.cloud.maintenance.exclusions if cluster.cloud.maintenance else ()
    if len(exclusions) > _MOST_EXCLUSIONS:
        yield Fault(
            f"{_PATH}.exclusions",
            f"{len(exclusions)} exclusions are declared, and GKE supports at most {_MOST_EXCLUSIONS}.",
            _NO_CLUSTER,
            "Remove past exclusions.",
        )
    of_all = _of_all_upgrades(cluster)
    for index, exclusion in of_all:
        days = (exclusion.end - exclusion.start).days + 1
        if days > _MOST_DAYS:
            yield Fault(
                f"{_PATH}.exclusions[{index}].end",
                f"An exclusion of all upgrades lasts {days} days, and GKE supports at most {_MOST_DAYS}.",
                _NO_CLUSTER,
                f"Write an end on {exclusion.start + timedelta(days=_MOST_DAYS - 1)} or earlier, or scope: "
                "no-minor-upgrades.",
            )
    for index, _ in of_all[_MOST_OF_ALL_UPGRADES:]:
        yield Fault(
            f"{_PATH}.exclusions[{index}]",
            f"{len(of_all)} exclusions are of all upgrades, and GKE supports at most "
            f"{_MOST_OF_ALL_UPGRADES}.",
            _NO_CLUSTER,
            "Remove a past exclusion, or write scope: no-minor-upgrades.",
        )


@cluster_rule("sufficient maintenance hours", f"{_GKE_DOCS}: 48 hours in 92 days", CloudKind.GKE)
def _gke_availability(cluster: Cluster) -> Iterator[Fault]:
    """Require 48 hours for maintenance in any 92 days, in pieces of at least four hours."""
    maintenance = cluster.cloud.maintenance
    exclusions = _of_all_upgrades(cluster)
    if maintenance is None or not exclusions or not _TIME.fullmatch(maintenance.window.start):
        return
    spans = [(exclusion.start.toordinal(), exclusion.end.toordinal()) for _, exclusion in exclusions]
    days = {
        day
        for first, last in spans
        if last - first < _MOST_DAYS
        for day in range(max(first - _ROLLING_DAYS, 1), min(last, date.max.toordinal() - 2 * _ROLLING_DAYS))
    }
    hours = {
        day: _open(maintenance.window, day, spans)
        for day in {day + later for day in days for later in range(_ROLLING_DAYS)}
    }
    left = {day: sum((hours[day + later] for later in range(_ROLLING_DAYS)), timedelta()) for day in days}
    first = min(days, key=lambda day: (left[day], day), default=None)
    if first is not None and left[first] < _LEAST_OPEN:
        yield Fault(
            f"{_PATH}.exclusions",
            f"In the {_ROLLING_DAYS} days from {date.fromordinal(first)}, the window and the exclusions "
            f"leave {left[first] // timedelta(hours=1)} hours for upgrades, and GKE requires 48, in pieces "
            "of at least 4.",
            _NO_CLUSTER,
            "Write a longer window or more days, or a shorter exclusion.",
        )


@cluster_rule("AKS maintenance exclusion scope", _AKS_DOCS, CloudKind.AKS)
def _aks_exclusions(cluster: Cluster) -> Iterator[Fault]:
    exclusions = cluster.cloud.maintenance.exclusions if cluster.cloud.maintenance else ()
    for index, exclusion in enumerate(exclusions):
        if exclusion.scope != "no-upgrades":
            yield Fault(
                f"{_PATH}.exclusions[{index}].scope",
                f"AKS does not support exclusions with the scope {exclusion.scope}, which only GKE has.",
                "All upgrades would be excluded on those days.",
                "Remove scope.",
            )


@cluster_rule("maintenance window needs upgrade channel", _AKS_DOCS, CloudKind.AKS)
def _aks_channel(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if isinstance(cloud, Aks) and cloud.maintenance is not None and cloud.upgrade_channel == "none":
        yield Fault(
            _PATH,
            "upgradeChannel is none, and a maintenance window is declared.",
            "The window would have no effect.",
            "Write another upgradeChannel, or omit maintenance.",
        )
