"""Rules for teams' buckets and shared volumes: cloud support, minimum size, and cost while idle."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CLOUD_SPECS, CloudKind, find_price
from ebbtide.declaration.catalog.prices import lowest_price
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule, dollars, service_name

_FILESTORE = "cloud.google.com/filestore/docs/service-tiers (2026): Basic HDD, 1 TiB to 63.9 TiB, zonal"
_FILES = "learn.microsoft.com/azure/storage/files, scale targets (2026): premium, 100 GiB to 100 TiB"

LEAST_GIB = {"filestore": 1024, "azure-files": 100}
"""Minimum size of a file system in each cloud, GiB."""

_MOST_GIB = {"filestore": 65433, "azure-files": 102400}
_ITEM = {"filestore": "filestore-basic-hdd-gib", "azure-files": "azure-files-premium-gib"}


@cluster_rule("supported volume kind", _FILESTORE)
def _of_the_cloud(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.site.cloud
    for number, team in enumerate(cluster.teams):
        kind = team.volume.kind if team.volume else "bucket"
        if kind != "bucket" and kind != CLOUD_SPECS[cloud].shared_volume:
            yield Fault(
                f"teams[{number}].volume.kind",
                f"{service_name(cloud)} has no {kind}.",
                "The volume could not be created.",
                f"Write kind: {CLOUD_SPECS[cloud].shared_volume}, or omit kind for a mounted bucket.",
            )


@cluster_rule("supported volume size", f"{_FILESTORE}; {_FILES}")
def _size(cluster: Cluster) -> Iterator[Fault]:
    for number, team in enumerate(cluster.teams):
        volume = team.volume
        if volume is None or volume.size_gib is None:
            continue
        path = f"teams[{number}].volume.sizeGib"
        if volume.kind == "bucket":
            yield Fault(path, "A bucket has no size.", "The field would have no effect.", "Remove sizeGib.")
        elif not LEAST_GIB[volume.kind] <= volume.size_gib <= _MOST_GIB[volume.kind]:
            yield Fault(
                path,
                f"{volume.kind} supports {LEAST_GIB[volume.kind]} to {_MOST_GIB[volume.kind]} GiB, not "
                f"{volume.size_gib}.",
                "The volume could not be created.",
                f"Write sizeGib: {LEAST_GIB[volume.kind]}, or a bucket.",
            )


@cluster_rule("filestore zone", _FILESTORE, CloudKind.GKE)
def _has_a_zone(cluster: Cluster) -> Iterator[Fault]:
    if cluster.site.is_zonal or any(pool.zones for pool in cluster.pools):
        return
    for number, team in enumerate(cluster.teams):
        if team.volume is not None and team.volume.kind == "filestore":
            yield Fault(
                f"teams[{number}].volume.kind",
                f"A filestore is in one zone, and neither {cluster.cloud.location} nor a pool has a single "
                "zone.",
                "It could not be created, or would be far from the nodes that use it.",
                "Write zones for the pool that uses it most, or omit kind for a mounted bucket.",
            )


@cluster_rule(
    "volume cost while idle", "catalog/data/prices.csv, a source in each row", severity=Severity.WARNED
)
def _bills_while_idle(cluster: Cluster) -> Iterator[Fault]:
    site = cluster.site
    for number, team in enumerate(cluster.teams):
        volume = team.volume
        if volume is None or volume.kind == "bucket":
            continue
        size = volume.size_gib or LEAST_GIB[volume.kind]
        item = _ITEM[volume.kind]
        price = find_price(site.cloud, site.region, item) or lowest_price(site.cloud, item)
        cost = f"about {dollars(price.on_demand * size)} an hour" if price and price.on_demand else "by size"
        yield Fault(
            f"teams[{number}].volume",
            f"{size} GiB of {volume.kind} cost {cost}, even while idle.",
            "The idle cluster would cost that much more.",
            "Omit kind for a mounted bucket, which is billed by its content.",
        )


@cluster_rule(
    "bucket contents deleted", "pulumi-gcp 10.2.0, storage.Bucket forceDestroy", severity=Severity.WARNED
)
def _force_destroy(cluster: Cluster) -> Iterator[Fault]:
    for number, team in enumerate(cluster.teams):
        if team.bucket is not None and team.bucket.keep is False and not cluster.is_ephemeral:
            yield Fault(
                f"teams[{number}].bucket.keep",
                "The bucket of a permanent cluster is deleted with its contents.",
                "A destroy would delete every checkpoint.",
                "Omit keep, unless that is intended.",
            )
