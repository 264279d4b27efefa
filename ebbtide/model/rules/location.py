"""Where a cluster and its pools stand."""

import re
from collections.abc import Iterator

from ebbtide.catalog import CloudKind
from ebbtide.catalog.clouds import is_gke_zone, region_of
from ebbtide.model.cloud import Aks, Gke
from ebbtide.model.cluster import Cluster
from ebbtide.model.faults import Fault
from ebbtide.model.rules.rule import ClusterRule, PoolIn, PoolRule

_GKE_LOCATION = re.compile(r"[a-z]+-[a-z]+[0-9]+(-[a-z])?")
_AKS_LOCATION = re.compile(r"[a-z]+[0-9]*")
_AKS_ZONES = ("1", "2", "3")
_PATH = "cloud.location"
_NO_CLUSTER = "The cluster could not be created."


def _gke_location(cluster: Cluster) -> Iterator[Fault]:
    location = cluster.cloud.location
    if not isinstance(cluster.cloud, Gke) or _GKE_LOCATION.fullmatch(location):
        return
    looks_like_azure = _AKS_LOCATION.fullmatch(location)
    yield Fault(
        _PATH,
        f"{location} is no region or zone of Google Cloud.",
        f"It looks like a region of Azure, and {_NO_CLUSTER.lower()}" if looks_like_azure else _NO_CLUSTER,
        "Write a zone such as us-central1-a for a zonal cluster, or a region such as us-central1.",
    )


def _aks_location(cluster: Cluster) -> Iterator[Fault]:
    location = cluster.cloud.location
    if not isinstance(cluster.cloud, Aks) or _AKS_LOCATION.fullmatch(location):
        return
    meant = re.sub(r"[\s_]", "", location).lower()
    kind = "zone" if is_gke_zone(location) else "region"
    looks_like_google = _GKE_LOCATION.fullmatch(location)
    yield Fault(
        _PATH,
        f"{location} is no region of Azure.",
        f"It looks like a {kind} of Google Cloud, and {_NO_CLUSTER.lower()}"
        if looks_like_google
        else _NO_CLUSTER,
        f"Write {meant}." if _AKS_LOCATION.fullmatch(meant) else "Write a region such as eastus.",
    )


def _gke_zones(pool: PoolIn) -> Iterator[Fault]:
    region = pool.site.region
    if not _GKE_LOCATION.fullmatch(region):
        return
    for index, zone in enumerate(pool.pool.zones):
        path = pool.at(f"zones[{index}]")
        if not is_gke_zone(zone):
            yield Fault(
                path,
                f"{zone} is no zone of Google Cloud.",
                "The node pool could not be created.",
                f"Write a zone of the region, such as {region}-a.",
            )
        elif region_of(zone) != region:
            yield Fault(
                path,
                f"The zone {zone} is not in {region}, where the cluster is.",
                "The node pool could not be created.",
                f"Write a zone of {region}, such as {region}-a.",
            )


def _aks_zones(pool: PoolIn) -> Iterator[Fault]:
    for index, zone in enumerate(pool.pool.zones):
        if zone not in _AKS_ZONES:
            yield Fault(
                pool.at(f"zones[{index}]"),
                f"AKS has no zone {zone}.",
                "The node pool could not be created.",
                'Write zones by their number: "1", "2" or "3".',
            )


def _zone_twice(pool: PoolIn) -> Iterator[Fault]:
    zones = pool.pool.zones
    for index, zone in enumerate(zones):
        if zone in zones[:index]:
            yield Fault(
                pool.at(f"zones[{index}]"),
                f"The zone {zone} is written twice.",
                "The cloud refuses a zone that is there twice.",
                "Leave one of the two out.",
            )


RULES: tuple[ClusterRule | PoolRule, ...] = (
    ClusterRule(
        "a location of Google Cloud",
        "Compute docs, regions-zones (cloud.google.com/compute/docs/regions-zones, 2026)",
        _gke_location,
        CloudKind.GKE,
    ),
    ClusterRule(
        "a location of Azure",
        "Azure docs, regions-list (learn.microsoft.com/azure/reliability/regions-list, 2026)",
        _aks_location,
        CloudKind.AKS,
    ),
    PoolRule(
        "zones in the cluster's region",
        "GKE v1 API, NodePool.locations (2026)",
        _gke_zones,
        CloudKind.GKE,
    ),
    PoolRule("zones by number", "azure-aks-docs availability-zones.md (2026)", _aks_zones, CloudKind.AKS),
    PoolRule(
        "no zone twice", "GKE v1 API, NodePool.locations; azure-native 3.29.0, availabilityZones", _zone_twice
    ),
)
