"""Rules for hardware and versions that a cloud does not offer, or not in a pool's location."""

import re
from collections.abc import Iterator, Sequence

from ebbtide.declaration.catalog import CloudKind, Offering, kubernetes_versions
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.model.cloud import Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, cluster_rule, pool_rule, service_name
from ebbtide.text import and_list, or_list

_SOME = 4


def _locations(pool: PoolIn) -> tuple[str, ...]:
    """Return the zones that a pool is created in, or on Azure its region."""
    site = pool.site
    if site.cloud is CloudKind.AKS or (site.is_zonal and not pool.pool.zones):
        return (site.location,)
    return pool.pool.zones or site.locations.default_zones(site.region)


@cluster_rule(
    "supported Kubernetes version",
    "GKE release notes, current versions (2026); azure-aks-docs supported-kubernetes-versions.md "
    "(2026-08-05); catalog/data/kubernetes_versions.csv",
)
def _version(cluster: Cluster) -> Iterator[Fault]:
    """Require a version that the release channel or the tier offers; an existing cluster has one. Newer
    versions than the table's are not refused: it ages."""
    written, cloud = cluster.cloud.kubernetes_version, cluster.site.cloud
    match = re.match(r"\d+\.\d+", written or "")
    if match is None or cluster.cloud.existing is not None:
        return
    field, plan, longest = (
        ("releaseChannel", cluster.cloud.release_channel, "extended")
        if isinstance(cluster.cloud, Gke)
        else ("tier", cluster.cloud.tier, "premium")
    )
    offered, longer = (kubernetes_versions(cloud, name) for name in (plan, longest))
    oldest, newest = _minor(offered[0]), _minor(offered[-1])
    if oldest <= (minor := _minor(match[0])) <= (newest[0], newest[1] + _MINORS_AHEAD):
        return
    when = "no longer has" if minor < oldest else "does not have"
    other = f"; {field}: {longest} has {longer[0]} to {longer[-1]}" if match[0] in longer else ""
    yield Fault(
        "cloud.kubernetesVersion",
        f"{service_name(cloud)} {when} Kubernetes {written} with {field}: {plan}.",
        "The cluster could not be created.",
        f"Write version {offered[0]} or later, such as {offered[-2]}, or omit it{other}.",
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
