"""Rules for hardware and versions that a cloud does not offer, or not in a pool's location."""

import re
from collections.abc import Iterator, Sequence

from ebbtide.declaration.catalog import PINS, CloudKind, Offering
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, cluster_rule, pool_rule
from ebbtide.declaration.model.rules.words import service_name
from ebbtide.text import and_list, or_list

_SOME = 4


def _locations(pool: PoolIn) -> tuple[str, ...]:
    """Return the zones that a pool is created in, or on Azure its region."""
    site = pool.site
    if site.cloud is CloudKind.AKS or (site.is_zonal and not pool.pool.zones):
        return (site.location,)
    return pool.pool.zones or site.locations.default_zones(site.region)


@cluster_rule("supported Kubernetes version", PINS["kubernetes-oldest"].source)
def _version(cluster: Cluster) -> Iterator[Fault]:
    """Require a version that a cloud can offer; an existing cluster has one."""
    written = cluster.cloud.kubernetes_version
    match = re.match(r"(\d+)\.(\d+)", written or "")
    if match is None or cluster.cloud.existing is not None:
        return
    oldest, newest = (_minor(PINS[name].version) for name in ("kubernetes-oldest", "kubernetes"))
    minor = int(match[1]), int(match[2])
    if not oldest <= minor <= (newest[0], newest[1] + _MINORS_AHEAD):
        when = "no longer has" if minor < oldest else "does not have"
        yield Fault(
            "cloud.kubernetesVersion",
            f"{service_name(cluster.site.cloud)} {when} Kubernetes {written}.",
            "The cluster could not be created.",
            f"Write version {oldest[0]}.{oldest[1]} or later, such as {newest[0]}.{newest[1] - 2}, or omit "
            "it.",
        )


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


_MINORS_AHEAD = 9
"""Minor versions that may follow the newest known: three a year (kubernetes.io/releases, 2026)."""


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


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
