"""Site of a pool: the parts of its cluster that the pool's rules read."""

from dataclasses import dataclass
from typing import Literal

from ebbtide.declaration.catalog import CloudKind, Locations
from ebbtide.declaration.catalog.clouds import azure_region, is_gke_zone, region_of
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.model.region import Region
from ebbtide.text import did_you_mean


@dataclass(frozen=True, slots=True, init=False)
class Site:
    """The cluster that a pool is part of.

    Attributes:
        cloud: cloud of the cluster.
        location: region, or on GKE also a zone.
        kubernetes_version: pinned version, if any.
        regions: regions that the declaration adds to the tables of locations.
    """

    cloud: CloudKind
    location: str
    kubernetes_version: str | None = None
    regions: tuple[Region, ...] = ()

    def __init__(
        self,
        cloud: CloudKind | Literal["gke", "aks"],
        location: str,
        kubernetes_version: str | None = None,
        regions: tuple[Region, ...] = (),
    ) -> None:
        """Accept the cloud's name as well as its kind.

        Raises:
            DeclarationError: there is no such cloud.
        """
        if cloud not in tuple(CloudKind):
            problem = f"There is no cloud {cloud}{did_you_mean(str(cloud), CloudKind)}"
            fault = Fault(
                "cloud",
                problem,
                "No pool can be checked.",
                f"Write one of {', '.join(CloudKind)}.",
                rule="known-kind",
            )
            raise DeclarationError([fault], subject="Site(…)")
        object.__setattr__(self, "cloud", CloudKind(cloud))
        is_azure = self.cloud is CloudKind.AKS
        object.__setattr__(self, "location", azure_region(location) if is_azure else location)
        object.__setattr__(self, "kubernetes_version", kubernetes_version)
        object.__setattr__(self, "regions", regions)

    @property
    def locations(self) -> Locations:
        """The regions and zones of its cloud."""
        return Locations(self.cloud, self.regions)

    @property
    def region(self) -> str:
        """The region of the location."""
        return region_of(self.location)

    @property
    def is_zonal(self) -> bool:
        """True if the control plane, and by default the nodes, are in one zone."""
        return self.cloud is CloudKind.GKE and is_gke_zone(self.location)
