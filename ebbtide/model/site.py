"""Where a pool stands: what its rules need to know of the cluster around it."""

from dataclasses import dataclass

from ebbtide.catalog import CloudKind
from ebbtide.catalog.clouds import is_gke_zone, region_of


@dataclass(frozen=True, slots=True)
class Site:
    """The cluster that a pool is part of.

    Attributes:
        cloud: whose it is.
        location: region, or on GKE also a zone.
        kubernetes_version: where it is pinned.
    """

    cloud: CloudKind
    location: str
    kubernetes_version: str | None = None

    @property
    def region(self) -> str:
        """The region of the location."""
        return region_of(self.location)

    @property
    def is_zonal(self) -> bool:
        """Whether the cluster has its control plane, and by default its nodes, in one zone."""
        return self.cloud is CloudKind.GKE and is_gke_zone(self.location)
