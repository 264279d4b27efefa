"""Over how many zones a pool is spread."""

from ebbtide.catalog import CloudKind
from ebbtide.model.pool import Pool
from ebbtide.model.site import Site

_ZONES_OF_A_GKE_REGION = 3
"""Zones in which a regional cluster has nodes by default (GKE docs, regional-clusters, 2026)."""


def zones_of(pool: Pool, site: Site) -> int:
    """The zones that the pool names, else the cluster's: one of a zonal cluster, three of a GKE region."""
    if pool.zones:
        return len(pool.zones)
    return 1 if site.is_zonal or site.cloud is CloudKind.AKS else _ZONES_OF_A_GKE_REGION
