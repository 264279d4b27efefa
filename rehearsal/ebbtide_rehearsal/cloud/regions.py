"""Regions and zones of the fake clouds: the catalog's, and those added by the stack's declaration."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ebbtide.declaration.catalog import CloudKind, Locations, Region
from ebbtide_rehearsal.cloud.store import Resource, Store

REGIONS: Final = "regions"
"""Cloud of regions in the store; they exist independently of stacks."""

_REGION: Final = "rehearsal:region"


@dataclass(frozen=True, slots=True)
class _Added:
    name: str
    zones: tuple[str, ...]
    offers: tuple[str, ...]


def add_regions(store: Store, cloud: CloudKind, regions: Iterable[Region]) -> None:
    """Add regions, zones and hardware to those of the catalog."""
    for number, region in enumerate(regions):
        state = {"name": region.name, "zones": list(region.zones), "offers": list(region.offers)}
        store.put(Resource(REGIONS, f"{cloud}/{region.name}/{number}", _REGION, state=state))


def locations(store: Store, cloud: CloudKind) -> Locations:
    """Return the regions and zones of a cloud."""
    added = (resource.state for resource in store.resources(REGIONS) if resource.id.startswith(f"{cloud}/"))
    return Locations(
        cloud, [_Added(state["name"], tuple(state["zones"]), tuple(state["offers"])) for state in added]
    )
