"""Number of zones of a pool."""

from ebbtide.catalog import GKE_REGION_ZONES, CloudKind
from ebbtide.model.pool import Pool
from ebbtide.model.site import Site


def zones_of(pool: Pool, site: Site) -> int:
    """Return the number of the pool's zones, by default the cluster's: one in a zonal cluster or on AKS, else
    those of the GKE region (three if unknown)."""
    if pool.zones:
        return len(pool.zones)
    if site.is_zonal or site.cloud is CloudKind.AKS:
        return 1
    return len(site.locations.default_zones(site.region)) or GKE_REGION_ZONES
