"""The cluster as a whole: settings of an existing one, versions and upgrade channels, and maintenance."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Final, assert_never

from ebbtide.declaration.catalog.clouds import account_host
from ebbtide.declaration.catalog.gpu_direct import VERSIONS
from ebbtide.declaration.catalog.versions import PINS, kubernetes_versions
from ebbtide.declaration.model.base import Declared
from ebbtide.declaration.model.capacity import FlexStart, Queued
from ebbtide.declaration.model.cloud import DAYS, Aks, Cloud, Gke, MaintenanceWindow
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    NO_GKE_POOL,
    PoolIn,
    PoolRule,
    Severity,
    cluster_rule,
    pools_of,
    service_name,
)
from ebbtide.text import and_list
from ebbtide.values import durations
from ebbtide.values.clock import today
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.paths import python_name

_ACCESS, _RANGE = "by its own settings", "by its network"
_SETTLED: Final[Mapping[CloudKind, Mapping[str, str]]] = by_cloud(
    gke={
        "releaseChannel": "by its release channel",
        **dict.fromkeys(("access.networks", "access.private", "maintenance"), _ACCESS),
        **dict.fromkeys(("consolidation.profile", "keys.secrets"), _ACCESS),
        **dict.fromkeys(("network.nodes", "network.pods", "network.services"), _RANGE),
        "overrides": _ACCESS,
    },
    aks={
        **dict.fromkeys(("overrides", "createResourceGroup", "tier", "upgradeChannel"), _ACCESS),
        **dict.fromkeys(("access.admins", "access.networks", "access.private"), _ACCESS),
        **dict.fromkeys(("access.privateDnsZone", "maintenance"), _ACCESS),
        **dict.fromkeys(("consolidation.delayMinutes", "consolidation.afterAddMinutes"), _ACCESS),
        **dict.fromkeys(("keys.secrets", "keys.disks"), _ACCESS),
        **dict.fromkeys(("network.nodes", "network.pods", "network.services", "network.managed"), _RANGE),
    },
)
"""Fields that are set when a cluster is created, and what sets them in an existing one, by cloud."""
_MINORS_AHEAD = 9
"""Minor versions that may follow the newest known: three a year (kubernetes.io/releases, 2026)."""
_RELEASES: Final = (
    "GKE release notes, current versions (2026); azure-aks-docs supported-kubernetes-versions.md "
    "(2026-08-05); catalog/data/kubernetes_versions.csv"
)
_NEWER_PATCHES = ("patch", "stable", "rapid")
_NEWER_MINORS = ("stable", "rapid")
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


def _is_default(cloud: Cloud, field: str) -> bool:
    """Return whether a field of the cloud has its default."""
    part: Declared = cloud
    *parents, last = map(python_name, field.split("."))
    for parent in parents:
        part = getattr(part, parent)
    default = type(part).model_fields[last].get_default(call_default_factory=True)
    return getattr(part, last) == default


@cluster_rule(
    "existing cluster not reconfigured",
    "pulumi-gcp 10.2.0, container.Cluster; azure-native 3.29.0, ManagedCluster: neither is made",
)
def _made_with(cluster: Cluster) -> Iterator[Fault]:
    existing = cluster.cloud.existing
    if existing is None:
        return
    for field, settled in _SETTLED[cluster.site.cloud].items():
        if not _is_default(cluster.cloud, field):
            yield Fault(
                f"cloud.{field}",
                f"The cluster {existing.name} already exists, and {field} is configured by the cluster's "
                "owner.",
                f"The field would have no effect: the value is set {settled}.",
                f"Remove {field}, or remove existing to create a new cluster.",
            )


@cluster_rule(
    "service account on existing cluster",
    "GKE docs, hardening (2026): least privilege for nodes; components/gke/identity.py",
    CloudKind.GKE,
    Severity.WARNED,
)
def _service_account(cluster: Cluster) -> Iterator[Fault]:
    """GKE uses the project's default account, and the nodes' access scope restricts none of its rights."""
    cloud = cluster.cloud
    pools = [pool for pool in pools_of(cluster) if pool.pool.service_account is None]
    if not isinstance(cloud, Gke) or cloud.existing is None or not pools:
        return
    names = and_list([pool.pool.name for pool in pools])
    has = "has" if len(pools) == 1 else "have"
    email = f"gke-nodes@{account_host(cloud.project)}"
    yield Fault(
        pools[0].at("serviceAccount"),
        f"{names} {has} no serviceAccount, and Ebbtide creates none for an existing cluster.",
        "The nodes run as the Compute Engine default service account of the project, which often has the "
        "role Editor on the project.",
        "Create an account with `gcloud iam service-accounts create gke-nodes --project "
        f"{cloud.project}`, grant it its role with `gcloud projects add-iam-policy-binding {cloud.project} "
        f"--member serviceAccount:{email} --role roles/container.defaultNodeServiceAccount`, and write "
        f"serviceAccount: {email}. Grant roles/artifactregistry.reader, too, for images of the project.",
    )


@cluster_rule(
    "network policies on existing cluster",
    "GKE docs, network-policy, and azure-aks-docs, use-network-policies (2026)",
    severity=Severity.WARNED,
)
def _network_policies(cluster: Cluster) -> Iterator[Fault]:
    """Every API server accepts a NetworkPolicy, but a cluster enforces it only with a policy engine."""
    existing = cluster.cloud.existing
    created = any(team.creates_namespace for team in cluster.teams)
    if existing is None or not (created or any(add_on.spec.namespace for add_on in cluster.installed)):
        return
    yield Fault(
        "cloud.existing",
        f"Network policy enforcement on {existing.name} is configured by the cluster's owner.",
        "Without it, pods of any namespace can reach the teams' pods, and the add-ons' APIs without "
        "authentication.",
        _how_to_look(cluster.cloud, existing.name),
    )


def _how_to_look(cloud: Cloud, name: str) -> str:
    match cloud:
        case Gke():
            command = (
                f"gcloud container clusters describe {name} --project {cloud.project} --location "
                f"{cloud.location} --format 'value(networkConfig.datapathProvider,networkPolicy.enabled)'"
            )
            expected, engine = "ADVANCED_DATAPATH or True", "network policy enforcement"
        case Aks():
            group = cloud.resource_group or name
            command = f"az aks show --name {name} --resource-group {group} --query networkProfile"
            expected, engine = "a networkPolicy of cilium, azure or calico", "one of them"
        case _:
            assert_never(cloud)
    return f"Run `{command}`: unless it prints {expected}, have its owner enable {engine}."


@cluster_rule("supported Kubernetes version", _RELEASES)
def _version(cluster: Cluster) -> Iterator[Fault]:
    """Require a version that the release channel or the tier offers; an existing cluster has one. Newer
    versions than the table's are not refused: it ages."""
    return (fault for fault, last in _not_offered(cluster) if last is None)


@cluster_rule("Kubernetes version before its end of life", _RELEASES, severity=Severity.WARNED)
def _end_of_life(cluster: Cluster) -> Iterator[Fault]:
    """Warn of a version that has ended since the table was written: a running cluster may have it."""
    for fault, last in _not_offered(cluster):
        if last is not None:
            ended = f"It ended on {last}: a new cluster could not be created, a running one gets no fixes."
            yield replace(fault, consequence=ended)


def _not_offered(cluster: Cluster) -> Iterator[tuple[Fault, date | None]]:
    """Yield the fault of a version that is not offered, with its last day if the table has one."""
    written, cloud, day = cluster.cloud.kubernetes_version, cluster.site.cloud, today()
    match = re.match(r"\d+\.\d+", written or "")
    if match is None or cluster.cloud.existing is not None:
        return
    match cluster.cloud:
        case Gke(release_channel=channel):
            field, plan, longest = "releaseChannel", channel.replace("none", "regular"), "extended"
        case Aks(tier=tier):
            field, plan, longest = "tier", tier, "premium"
        case _:
            assert_never(cluster.cloud)
    known = kubernetes_versions(cloud, plan)
    offered, longer = (
        [version for version, last in versions.items() if last >= day]
        for versions in (known, kubernetes_versions(cloud, longest))
    )
    if not offered:
        return
    oldest, newest = _minor(offered[0]), _minor(offered[-1])
    if oldest <= (minor := _minor(match[0])) <= (newest[0], newest[1] + _MINORS_AHEAD):
        return
    when = "no longer has" if minor < oldest else "does not have"
    other = f"; {field}: {longest} has {longer[0]} to {longer[-1]}" if match[0] in longer else ""
    fault = Fault(
        "cloud.kubernetesVersion",
        f"{service_name(cloud)} {when} Kubernetes {written} with {field}: {plan}.",
        NO_CLUSTER,
        f"Write version {offered[0]} or later, such as {offered[-2:][0]}, or omit it{other}.",
    )
    yield fault, known.get(match[0])


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def is_earlier(pinned: str, least: str) -> bool:
    """Return whether a version is earlier than another; a shorter version means the newest with that prefix
    (GKE docs, versioning)."""
    have, need = ([int(part) for part in re.findall(r"\d+", text)] for text in (pinned, least))
    return have < need[: len(have)]


def _scheduled(pool: PoolIn) -> bool:
    return isinstance(pool.pool.capacity, FlexStart | Queued)


def _has_gpu_direct(family: str, pool: PoolIn) -> bool:
    machine = pool.machine
    return pool.pool.gpu_direct is not None and machine is not None and machine.family == family


def _since(what: str, field: str, pin: str, is_requested: Callable[[PoolIn], bool]) -> PoolRule:
    """Return the rule that a cluster whose pool uses a feature has the first version of GKE with it.

    Args:
        what: name of the feature in messages.
        field: field that requests it.
        pin: name of the version in the catalog's `PINS`.
        is_requested: returns whether a pool requests it.
    """
    least = PINS[pin].version

    def check(pool: PoolIn) -> Iterator[Fault]:
        pinned = pool.site.kubernetes_version
        if pinned is not None and is_requested(pool) and is_earlier(pinned, least):
            yield Fault(
                pool.at(field),
                f"GKE has {what} since {least}, and kubernetesVersion is {pinned}.",
                NO_GKE_POOL,
                f"Write kubernetesVersion: {least} or later, or omit it.",
            )

    source = f"{PINS[pin].source} ({PINS[pin].as_of})"
    return PoolRule(f"GKE version for {what}", source, check, CloudKind.GKE)


_SCHEDULED = "queued provisioning and flex-start"
RULES: tuple[PoolRule, ...] = (
    _since(
        _SCHEDULED,
        "capacity",
        "gke-queued-provisioning",
        lambda pool: _scheduled(pool) and not pool.resolved.has_tpus,
    ),
    _since(
        f"{_SCHEDULED} for TPUs",
        "capacity",
        "gke-tpu-flex-start",
        lambda pool: _scheduled(pool) and pool.resolved.has_tpus,
    ),
    *(
        _since(
            f"GPUDirect on machines of series {family}", "gpuDirect", pin, partial(_has_gpu_direct, family)
        )
        for family, pin in VERSIONS.items()
    ),
    _since(
        "extended shutdown grace for spot nodes",
        "shutdownGrace",
        "gke-shutdown-grace",
        lambda pool: pool.pool.shutdown_grace is not None,
    ),
)


@cluster_rule(
    "pinned version needs matching upgrade channel",
    "azure-aks-docs auto-upgrade-cluster.md (2026-06-26)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _leaves_the_pin(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if not isinstance(cloud, Aks) or cloud.kubernetes_version is None or cloud.existing is not None:
        return
    pinned, channel = cloud.kubernetes_version, cloud.upgrade_channel
    minor = pinned.rpartition(".")[0]
    is_patch = "." in minor
    if channel not in (_NEWER_PATCHES if is_patch else _NEWER_MINORS):
        return
    yield Fault(
        "cloud.kubernetesVersion",
        f"The version is pinned to {pinned}, and the upgrade channel {channel} installs newer "
        f"{'patches' if is_patch else 'versions'}.",
        "After the first upgrade, every preview would downgrade the cluster, which AKS refuses.",
        f"Write upgradeChannel: none{f', or kubernetesVersion: {minor}' if channel == 'patch' else ''}.",
    )


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


def _of_all_upgrades(cluster: Cluster) -> list[tuple[int, date, date]]:
    """Return the index, first and last day of each exclusion of all upgrades, except those that end before
    they begin."""
    exclusions = cluster.cloud.maintenance.exclusions if cluster.cloud.maintenance else ()
    return [
        (index, exclusion.start, exclusion.end)
        for index, exclusion in enumerate(exclusions)
        if exclusion.scope == "no-upgrades" and exclusion.end is not None and exclusion.start <= exclusion.end
    ]


@cluster_rule("valid maintenance exclusion dates", f"{_GKE_DOCS}; {_AKS_DOCS}")
def _exclusions(cluster: Cluster) -> Iterator[Fault]:
    exclusions = cluster.cloud.maintenance.exclusions if cluster.cloud.maintenance else ()
    names, on_aks = [exclusion.name for exclusion in exclusions], cluster.site.cloud is CloudKind.AKS
    for index, exclusion in enumerate(exclusions):
        path = f"{_PATH}.exclusions[{index}]"
        if exclusion.end is None and (on_aks or exclusion.scope == "no-upgrades"):
            other = "" if on_aks else ", or scope: no-minor-upgrades or no-minor-or-node-upgrades"
            yield Fault(
                path,
                "The exclusion has no end; only GKE excludes upgrades until the end of a version's support, "
                "and not all upgrades.",
                _NO_CLUSTER,
                f"Write end, its last day{other}.",
            )
        if exclusion.end is not None and exclusion.end < exclusion.start:
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
    channel = cluster.cloud.release_channel if isinstance(cluster.cloud, Gke) else ""
    for index, exclusion in enumerate(exclusions if channel == "none" and not cluster.cloud.existing else ()):
        if exclusion.scope != "no-upgrades":
            yield Fault(
                f"{_PATH}.exclusions[{index}].scope",
                f"Without a release channel, GKE has no exclusion of {exclusion.scope}.",
                _NO_CLUSTER,
                "Write scope: no-upgrades, or a releaseChannel.",
            )
    of_all = _of_all_upgrades(cluster)
    for index, start, end in of_all:
        days = (end - start).days + 1
        if days > _MOST_DAYS:
            yield Fault(
                f"{_PATH}.exclusions[{index}].end",
                f"An exclusion of all upgrades lasts {days} days, and GKE supports at most {_MOST_DAYS}.",
                _NO_CLUSTER,
                f"Write an end on {start + timedelta(days=_MOST_DAYS - 1)} or earlier, or scope: "
                "no-minor-upgrades.",
            )
    for index, *_ in of_all[_MOST_OF_ALL_UPGRADES:]:
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
    spans = [(start.toordinal(), end.toordinal()) for _, start, end in exclusions]
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
