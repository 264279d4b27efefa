"""Regions, zones and machine types of the fake clouds: the catalog's, and those of the stack's
declaration."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Final

from ebbtide.declaration.catalog.locations import Locations, Region
from ebbtide.declaration.catalog.machines import Machine, find_machine, spelled
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.store import Resource, Store

REGIONS: Final = "regions"
"""Cloud of regions in the store; they exist independently of stacks."""

_REGION: Final = "rehearsal:region"
_MACHINE: Final = "rehearsal:machine"


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
    added = (
        resource.state
        for resource in store.resources(REGIONS, _REGION)
        if resource.id.startswith(f"{cloud}/")
    )
    return Locations(
        cloud, [_Added(state["name"], tuple(state["zones"]), tuple(state["offers"])) for state in added]
    )


def add_machines(store: Store, machines: Iterable[Machine]) -> None:
    """Add machine types to those of the catalog."""
    for machine in machines:
        identity = f"{machine.cloud}/machines/{machine.name}"
        store.put(Resource(REGIONS, identity, _MACHINE, state=asdict(machine)))


def machine_of(store: Store, cloud: CloudKind, name: str) -> Machine | None:
    """Return the machine type of a cloud with that name, for which Azure ignores case; None if it has
    none."""
    name = spelled(name)
    added = None if (known := find_machine(cloud, name)) else store.get(REGIONS, f"{cloud}/machines/{name}")
    return replace(Machine(**added.state), cloud=cloud) if added else known
