"""Over how many zones a pool is spread."""

from ebbtide.catalog import GKE_REGION_ZONES, CloudKind
from ebbtide.model.pool import Pool
from ebbtide.model.site import Site


def zones_of(pool: Pool, site: Site) -> int:
    """Return the zones that the pool names, else the cluster's: one of a zonal cluster, three of a GKE
    region."""
    if pool.zones:
        return len(pool.zones)
    if site.is_zonal or site.cloud is CloudKind.AKS:
        return 1
    return len(site.locations.default_zones(site.region)) or GKE_REGION_ZONES
