"""Locations of a cluster and its pools, and the hardware that they offer."""

import re
from collections.abc import Iterator, Sequence

from ebbtide.declaration.catalog.clouds import is_gke_zone, region_of
from ebbtide.declaration.catalog.locations import Locations, Offering, is_ai_zone
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    NO_POOL,
    PoolIn,
    Severity,
    cluster_rule,
    pool_rule,
    service_name,
)
from ebbtide.text import and_list, did_you_mean, or_list
from ebbtide.values.cloud_kind import CloudKind

_GKE_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_AKS_REGION = re.compile(r"[a-z]+[0-9]*")
_PATH = "cloud.location"
_BEHIND = "if Ebbtide's table is out of date"
_TABLE = "catalog/data/locations.csv, a source in each row"
_SOME = 4


@cluster_rule("known Google Cloud location", _TABLE, CloudKind.GKE)
def _gke_location(cluster: Cluster) -> Iterator[Fault]:
    location, locations = cluster.cloud.location, cluster.site.locations
    if location in locations.names():
        return
    region = region_of(location)
    if zones := locations.zones(region):
        yield Fault(
            _PATH,
            f"{region} has no zone {location}: it has {and_list(zones)}.",
            NO_CLUSTER,
            f"Write one of them, or {region} for a regional cluster. Add the zone to cloud.regions "
            f"{_BEHIND}.",
        )
        return
    azure = location in Locations(CloudKind.AKS).names()
    suggestion = "." if azure else did_you_mean(location, locations.names())
    yield Fault(
        _PATH,
        f"Google Cloud has no region or zone {location}{suggestion}",
        f"It is an Azure region, and {NO_CLUSTER.lower()}" if azure else NO_CLUSTER,
        "Write a zone such as us-central1-a for a zonal cluster, or a region such as us-central1."
        + (f" Add the region to cloud.regions {_BEHIND}." if _GKE_REGION.fullmatch(region) else ""),
    )


@cluster_rule("known Azure location", _TABLE, CloudKind.AKS)
def _aks_location(cluster: Cluster) -> Iterator[Fault]:
    location, locations = cluster.cloud.location, cluster.site.locations
    if location in locations.names():
        return
    meant = re.sub(r"[\s_]", "", location).lower()
    google = location in Locations(CloudKind.GKE).names()
    kind = "zone" if is_gke_zone(location) else "region"
    suggestion = "." if google else did_you_mean(location, locations.names())
    fix = "Write a region such as eastus."
    if meant in locations.names():
        suggestion, fix = ".", f"Write {meant}."
    elif _AKS_REGION.fullmatch(location):
        fix += f" Add it to cloud.regions {_BEHIND}."
    yield Fault(
        _PATH,
        f"Azure has no region {location}{suggestion}",
        f"It is a {kind} of Google Cloud, and {NO_CLUSTER.lower()}" if google else NO_CLUSTER,
        fix,
    )


@cluster_rule(
    "AI zone for accelerators",
    "Compute docs, ai-zones (2026); Cloud Storage docs, ai-zones (2026-04-08)",
    CloudKind.GKE,
    Severity.WARNED,
)
def _ai_zone(cluster: Cluster) -> Iterator[Fault]:
    location, site = cluster.cloud.location, cluster.site
    if cluster.cloud.existing is None and is_ai_zone(location):
        yield Fault(
            _PATH,
            f"{location} is an AI zone, and the control plane and every pool without zones are in it.",
            "AI zones are for accelerators. They are far from the region's other zones and depend on one "
            "of them, and may lack common machine types.",
            f"Write location: {site.region}, or one of its other zones, and zones: [{location}] on the pools "
            "with accelerators.",
        )


@cluster_rule("added region not redundant", _TABLE)
def _adds_nothing(cluster: Cluster) -> Iterator[Fault]:
    known = Locations(cluster.site.cloud).regions()
    for index, region in enumerate(cluster.cloud.regions):
        if region.name in known and not region.zones and not region.offers:
            yield Fault(
                f"cloud.regions[{index}]",
                f"The region {region.name} is known, and the entry adds nothing to it.",
                "The entry would have no effect.",
                "Write zones or offers, or omit the entry.",
            )


@cluster_rule("added region has zones", "Compute docs, regions-zones; ai-zones (2026)", CloudKind.GKE)
def _added_gke(cluster: Cluster) -> Iterator[Fault]:
    """Require that an added region has zones, all of them its own."""
    for index, region in enumerate(cluster.cloud.regions):
        path = f"cloud.regions[{index}]"
        if not _GKE_REGION.fullmatch(region.name):
            yield Fault(
                f"{path}.name",
                f"{region.name} is not a valid name of a Google Cloud region.",
                "No cluster or pool could be created in it.",
                "Write a name such as us-central1; its zones are listed under zones.",
            )
            continue
        if not cluster.site.locations.zones(region.name):
            yield Fault(
                f"{path}.zones",
                f"No zone of {region.name} is known.",
                "No node could be placed in it.",
                f"Write its zones, such as [{region.name}-a, {region.name}-b].",
            )
        for number, zone in enumerate(region.zones):
            if not is_gke_zone(zone) or region_of(zone) != region.name:
                yield Fault(
                    f"{path}.zones[{number}]",
                    f"{zone} is not a valid name of a zone of {region.name}.",
                    "No node could be placed in it.",
                    f"Write a name such as {region.name}-a, or {region.name}-ai1a for an AI zone.",
                )


@cluster_rule(
    "added region name",
    "Azure docs, regions-list (learn.microsoft.com/azure/reliability/regions-list, 2026)",
    CloudKind.AKS,
)
def _added_aks(cluster: Cluster) -> Iterator[Fault]:
    for index, region in enumerate(cluster.cloud.regions):
        path = f"cloud.regions[{index}]"
        if not _AKS_REGION.fullmatch(region.name):
            yield Fault(
                f"{path}.name",
                f"{region.name} is not a valid name of an Azure region.",
                "No cluster could be created in it.",
                "Write a name such as eastus, in lower-case letters and digits.",
            )
        for number, zone in enumerate(region.zones):
            if not zone.isdecimal():
                yield Fault(
                    f"{path}.zones[{number}]",
                    f"{zone} is not a valid name of an Azure zone.",
                    NO_POOL,
                    'Write zones by number: "1", "2" or "3".',
                )


@pool_rule("zones in cluster region", f"GKE v1 API, NodePool.locations (2026); {_TABLE}", CloudKind.GKE)
def _gke_zones(pool: PoolIn) -> Iterator[Fault]:
    region, locations = pool.site.region, pool.site.locations
    zones = locations.zones(region)
    if not zones:
        return
    for index, zone in enumerate(pool.pool.zones):
        if zone in zones:
            continue
        problem = f"{region} has no zone {zone}."
        fix = f"Write {or_list(zones)}. Add the zone to cloud.regions {_BEHIND}."
        if not is_gke_zone(zone):
            problem = f"{zone} is not a Google Cloud zone."
            fix = f"Write a zone of the region, such as {zones[0]}."
        elif region_of(zone) != region:
            problem = f"The zone {zone} is not in {region}, where the cluster is."
            fix = f"Write a zone of {region}, such as {zones[0]}."
        yield Fault(pool.at(f"zones[{index}]"), problem, NO_POOL, fix)


@pool_rule(
    "AKS zone numbers",
    "azure-aks-docs reliability-availability-zones-configure.md (2026-03-26); rancher/rancher#33019; "
    f"{_TABLE}",
    CloudKind.AKS,
)
def _aks_zones(pool: PoolIn) -> Iterator[Fault]:
    region, locations = pool.site.location, pool.site.locations
    if region not in locations.regions():
        return
    zones = locations.zones(region)
    for index, zone in enumerate(pool.pool.zones):
        path = pool.at(f"zones[{index}]")
        if zone in zones:
            continue
        if not zones and zone.isdecimal():
            yield Fault(
                path,
                f"The region {region} has no availability zones.",
                "AKS refuses a node pool with zones there.",
                f"Remove zones. Add the zones to cloud.regions {_BEHIND}.",
            )
            return
        yield Fault(
            path,
            f"AKS has no zone {zone} in {region}.",
            NO_POOL,
            "Write zones by number: " + or_list([f'"{known}"' for known in zones or ("1", "2", "3")]) + ".",
        )


@pool_rule("unique zones", "GKE v1 API, NodePool.locations; azure-native 3.29.0, availabilityZones")
def _zone_twice(pool: PoolIn) -> Iterator[Fault]:
    zones = pool.pool.zones
    for index, zone in enumerate(zones):
        if zone in zones[:index]:
            yield Fault(
                pool.at(f"zones[{index}]"),
                f"The zone {zone} is written twice.",
                "The cloud refuses duplicate zones.",
                "Remove one of the two.",
            )


def _locations(pool: PoolIn) -> tuple[str, ...]:
    """Return the zones that a pool is created in, or on Azure its region."""
    site = pool.site
    match site.cloud:
        case CloudKind.GKE if pool.pool.zones or not site.is_zonal:
            return pool.pool.zones or site.locations.default_zones(site.region)
        case CloudKind.GKE | CloudKind.AKS:
            return (site.location,)


def _hardware(offering: Offering, pool: PoolIn) -> str:
    """Return the cloud's name of the accelerator, or else the machine type, since a declaration names no
    family."""
    accelerator, shape = pool.pool.accelerator, pool.pool.machine
    if accelerator is not None and accelerator.type == offering.item:
        return accelerator.type
    return shape.type if shape else offering.item


def _fix(offering: Offering, pool: PoolIn) -> str:
    region = pool.site.region
    zones = [zone for zone in offering.locations if region_of(zone) == region and zone != region]
    known = f"Or add it to the offers of {region} in cloud.regions."
    if zones and pool.site.cloud is CloudKind.GKE:
        return f"Write zones: [{', '.join(zones)}]. {known}"
    listed = _nearest(offering.locations, region)
    return f"Write a location that offers it, such as {or_list(listed)}. {known}"


def _nearest(listed: Sequence[str], region: str) -> list[str]:
    """Return a few regions, on Google Cloud those on the same continent first."""
    regions = dict.fromkeys(region_of(location) for location in listed)
    continent = region.partition("-")[0]
    return sorted(regions, key=lambda name: name.partition("-")[0] != continent)[:_SOME]


@pool_rule(
    "hardware available in location",
    "catalog/data/offerings.csv, a source in each row; "
    "GoogleCloudPlatform/kubernetes-engine-samples#1738, keras-team/kinetic#305",
    severity=Severity.WARNED,
)
def _is_offered(pool: PoolIn) -> Iterator[Fault]:
    locations, machine = pool.site.locations, pool.machine
    shape, accelerator = pool.pool.machine, pool.pool.accelerator
    if shape is None:
        return
    kind = accelerator.type if accelerator else machine.accelerator if machine else ""
    offering = locations.offering(machine.family if machine else "", kind)
    if offering is None:
        return
    missing = [
        location
        for location in _locations(pool)
        if region_of(location) in locations.regions() and not locations.offers(offering, location, shape.type)
    ]
    if missing:
        yield Fault(
            pool.at("zones" if pool.pool.zones else "machine"),
            f"{_hardware(offering, pool)} is not listed in {and_list(missing)} in Ebbtide's table of "
            f"{offering.as_of}.",
            f"If the table is right, {service_name(pool.site.cloud)} refuses the node pool after the rest "
            "of the stack is created.",
            _fix(offering, pool),
        )
