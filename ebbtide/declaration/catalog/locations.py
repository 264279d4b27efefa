"""Regions and zones of the clouds, and the hardware that is offered in them.

Tables age: an unknown region is an error, but hardware that is not listed in a location is only a warning.
`Locations` extends the tables with the regions that a declaration adds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from ebbtide.declaration.catalog.clouds import GKE_REGION_ZONES, is_gke_zone, region_of
from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind, by_cloud


class Region(Protocol):
    """A region, or an addition to the tables.

    Attributes:
        name: name in the cloud.
        zones: names of zones on Google Cloud, numbers on Azure.
        offers: machine types, machine families and accelerator types that are offered in all of its zones.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see the class
    @property
    def zones(self) -> tuple[str, ...]: ...  # noqa: D102 - see the class
    @property
    def offers(self) -> tuple[str, ...]: ...  # noqa: D102 - see the class


@dataclass(frozen=True, slots=True)
class Offering:
    """The locations of an accelerator type or a machine family.

    Attributes:
        item: the accelerator type or machine family.
        locations: zones, or a region if its zones are unknown.
        as_of: year and month of the table.
    """

    item: str
    locations: tuple[str, ...]
    as_of: str


@cache
def _regions(cloud: CloudKind) -> dict[str, tuple[str, ...]]:
    return {
        row["region"]: tuple(_zone(cloud, row["region"], zone) for zone in row["zones"].split())
        for row in rows("locations")
        if row["cloud"] == cloud.value
    }


def _zone(cloud: CloudKind, region: str, written: str) -> str:
    return by_cloud(gke=f"{region}-{written}", aks=written)[cloud]


@cache
def _offerings(cloud: CloudKind) -> dict[str, Offering]:
    return {
        row["item"]: Offering(row["item"], tuple(row["locations"].split()), row["as_of"])
        for row in rows("offerings")
        if row["cloud"] == cloud.value
    }


@dataclass(frozen=True, slots=True)
class Carbon:
    """Carbon of the electricity of a Google Cloud region.

    Attributes:
        carbon_free: hourly average share of carbon-free energy, with Google's purchases; 0 to 1.
        grid_g_per_kwh: mean emissions of the region's grid, grams of CO2 equivalent per kWh.
        as_of: year of the figures.
    """

    carbon_free: float
    grid_g_per_kwh: float
    as_of: str


@cache
def carbon() -> dict[str, Carbon]:
    """Return the carbon of Google Cloud's regions, as Google publishes it; Azure publishes none by region."""
    return {
        row["region"]: Carbon(float(row["carbon_free"]), float(row["grid_g_per_kwh"]), row["as_of"])
        for row in rows("carbon")
    }


def is_ai_zone(zone: str) -> bool:
    """Return whether a zone is an AI zone, which is used only if it is named."""
    return is_gke_zone(zone) and zone.removeprefix(f"{region_of(zone)}-").startswith("ai")


@dataclass(frozen=True, slots=True)
class Locations:
    """Regions and zones of a cloud.

    Attributes:
        added: regions that are newer than the tables, or have more zones or hardware than listed.
    """

    cloud: CloudKind
    added: Sequence[Region] = ()

    def regions(self) -> list[str]:
        """Names of all regions."""
        return list(dict.fromkeys((*_regions(self.cloud), *(region.name for region in self.added))))

    def zones(self, region: str) -> tuple[str, ...]:
        """Return the zones of a region; empty for a region without zones or an unknown one."""
        added = (zone for entry in self.added if entry.name == region for zone in entry.zones)
        return tuple(dict.fromkeys((*_regions(self.cloud).get(region, ()), *added)))

    def default_zones(self, region: str) -> tuple[str, ...]:
        """Return the default zones for nodes of a regional GKE cluster: three, without AI zones."""
        return tuple(zone for zone in self.zones(region) if not is_ai_zone(zone))[:GKE_REGION_ZONES]

    def names(self) -> list[str]:
        """Return all valid locations of a cluster: regions, and zones on Google Cloud."""
        match self.cloud:
            case CloudKind.GKE:
                zones = (zone for region in self.regions() for zone in self.zones(region))
                return [*self.regions(), *zones]
            case CloudKind.AKS:
                return list(self.regions())

    def offering(self, family: str, accelerator: str) -> Offering | None:
        """Return the row for a pool's accelerators, or else for its machine family; None if there is none."""
        table = _offerings(self.cloud)
        return table.get(accelerator) or table.get(family)

    def offers(self, offering: Offering, location: str, machine: str = "") -> bool:
        """Return whether the tables list an item in a location.

        Args:
            offering: row of the item.
            location: a zone; or a region, in which one zone is sufficient.
            machine: machine type that `added` may list instead of the item.
        """
        region = region_of(location)
        if any(entry.name == region and {offering.item, machine} & {*entry.offers} for entry in self.added):
            return True
        if location == region:
            return any(region_of(listed) == region for listed in offering.locations)
        return location in offering.locations or region in offering.locations
