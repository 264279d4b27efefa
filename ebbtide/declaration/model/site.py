"""Site of a pool: the parts of its cluster that its rules read, and regions that a declaration adds."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator

from ebbtide.declaration.catalog.clouds import azure_region, is_gke_zone, region_of
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.model.base import Declared, Name, Zone
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.text import did_you_mean
from ebbtide.values.cloud_kind import CloudKind


def _named(value: object) -> object:
    return azure_region(value) if isinstance(value, str) else value


AzureRegion = Annotated[Name, BeforeValidator(_named, json_schema_input_type=Name)]
"""A region by its name, or on Azure as it is displayed."""


class Region(Declared):
    """An addition to Ebbtide's table of locations: a newer region, or more zones or hardware of a listed
    one."""

    name: AzureRegion
    """Name in the cloud: `us-central1`, `eastus`."""
    zones: tuple[Zone, ...] = ()
    """Zones that the table lacks. GKE: their names, including AI zones; AKS: their numbers, `1`."""
    offers: tuple[Name, ...] = ()
    """Machine types, machine families and accelerator types offered in all of its zones: `a2-highgpu-1g`,
    `c4`, `nvidia-b200`."""


@dataclass(frozen=True, slots=True, init=False)
class Site:
    """The cluster that a pool is part of.

    Attributes:
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
