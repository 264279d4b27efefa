"""Zones and regions."""

from typing import Final

from ebbtide.catalog import GKE_REGION_ZONES
from ebbtide.catalog.clouds import is_gke_zone

# Regions whose zones do not begin with a (Compute docs, regions-zones, 2026-11).
_LETTERS: Final = {"us-east1": "bcd", "europe-west1": "bcd"}


def zones_of(location: str) -> tuple[str, ...]:
    """The zones in which a cluster at a location has nodes where none are named: its own, or the first three
    of its region."""
    if is_gke_zone(location):
        return (location,)
    return tuple(f"{location}-{letter}" for letter in _LETTERS.get(location, "abc")[:GKE_REGION_ZONES])
