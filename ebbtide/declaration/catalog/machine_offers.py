"""Search for machine types by accelerator, cloud and region, with prices and locations."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from ebbtide.declaration.catalog.accelerators import short_for
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.catalog.machines import (
    AMD64,
    Machine,
    architecture,
    attachable_counts,
    attachable_memory_gib,
    attachable_types,
    find_machine,
    machine_names,
)
from ebbtide.declaration.catalog.prices import Price, find_price, lowest_price, node_items, priced_regions
from ebbtide.declaration.catalog.resources import Resources
from ebbtide.values.cloud_kind import CloudKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOffer:
    """A machine type with its accelerators, in a region.

    Attributes:
        accelerator: type of its accelerators, built-in or attached; empty for none.
        count: number of accelerators.
        accelerator_memory_gib: memory of an accelerator, GiB; None if unknown, or without accelerators.
        vcpus: virtual CPUs.
        memory_gib: memory, GiB.
        region: the region of the prices; empty if no region has a known price.
        on_demand: USD per hour with accelerators, without disks; None if unknown.
        spot: price on spot capacity; otherwise as `on_demand`.
        spot_estimated: whether the spot price is an estimate.
        flex: price with Dynamic Workload Scheduler; otherwise as `on_demand`.
        flex_estimated: whether the price with Dynamic Workload Scheduler is an estimate.
        as_of: dates of the prices, year and month.
        locations: the zones, or on Azure the regions, that offer it; empty if no table limits them.
    """

    cloud: CloudKind
    machine: str
    accelerator: str
    count: int
    accelerator_memory_gib: float | None
    vcpus: int
    memory_gib: float
    region: str
    on_demand: float | None
    spot: float | None
    spot_estimated: bool
    flex: float | None
    flex_estimated: bool
    as_of: tuple[str, ...]
    locations: tuple[str, ...]


@cache
def accelerator_types(cloud: CloudKind) -> tuple[str, ...]:
    """Return all accelerator types of a cloud, built-in or attachable."""
    machines = (find_machine(cloud, name) for name in machine_names(cloud))
    own = (machine.accelerator for machine in machines if machine is not None and machine.accelerator)
    return tuple(dict.fromkeys((*(attachable_types() if cloud is CloudKind.GKE else ()), *own)))


def machine_offers(cloud: CloudKind, *, gpu: str = "", region: str = "") -> list[MachineOffer]:
    """Return the machine types of a cloud, the lowest on-demand price first, unknown prices last.

    Args:
        gpu: an accelerator type, or its short name such as `t4`; empty includes machines without
            accelerators.
        region: region that must offer them, and whose prices apply; empty for the region with the lowest
            price.
    """
    accelerators = set(short_for(gpu, accelerator_types(cloud))) if gpu else None
    offers = (
        offer
        for machine, accelerator, count in _combinations(cloud)
        if accelerators is None or accelerator in accelerators
        for offer in _offer(machine, accelerator, count, region)
    )
    return sorted(offers, key=lambda offer: (offer.on_demand is None, offer.on_demand or 0, offer.machine))


def _combinations(cloud: CloudKind) -> Iterator[tuple[Machine, str, int]]:
    """Yield machine types with their built-in or attachable accelerators."""
    for name in machine_names(cloud):
        machine = find_machine(cloud, name)
        if machine is None:
            continue
        yield machine, machine.accelerator, machine.accelerator_count
        for accelerator in attachable_types() if machine.attachable else ():
            for count in attachable_counts(machine, accelerator):
                yield machine, accelerator, count


def _offer(machine: Machine, accelerator: str, count: int, region: str) -> Iterator[MachineOffer]:
    """Yield the offer; nothing if it is not available in the region."""
    locations = Locations(machine.cloud)
    offering = locations.offering(machine.family, accelerator)
    if region and offering is not None and not locations.offers(offering, region, machine.name):
        return
    places = offering.locations if offering is not None else ()
    if region:
        places = tuple(place for place in places if region_of(place) == region)
    attached = "" if machine.accelerator else accelerator
    regions = [region] if region else priced_regions(machine.cloud, machine.name)
    items = {place: node_items(machine.cloud, place, machine.name, attached, count) for place in regions}
    where = min(items, key=lambda place: _total(items[place], "on-demand") or math.inf, default="")
    bill = items.get(where, [])
    yield MachineOffer(
        cloud=machine.cloud,
        machine=machine.name,
        accelerator=accelerator,
        count=count,
        accelerator_memory_gib=machine.accelerator_memory_gib or attachable_memory_gib(accelerator),
        vcpus=machine.vcpus,
        memory_gib=machine.memory_gib,
        region=where,
        on_demand=_total(bill, "on-demand"),
        spot=_total(bill, "spot"),
        spot_estimated=any(price.spot_estimated for _, price, _ in bill if price),
        flex=_total(bill, "flex-start"),
        flex_estimated=any(price.flex_estimated for _, price, _ in bill if price),
        as_of=tuple(sorted({price.as_of for _, price, _ in bill if price})),
        locations=places,
    )


def _total(bill: Sequence[tuple[str, Price | None, int]], capacity: str) -> float | None:
    """Return the sum of a node's items, USD per hour; None if a price is unknown, or without items."""
    rates = [(price.of(capacity) if price else None, count) for _, price, count in bill]
    if not rates or any(rate is None for rate, _ in rates):
        return None
    return sum(rate * count for rate, count in rates if rate is not None)


def cheapest(
    cloud: CloudKind, region: str, need: Resources, *, least_vcpus: int = 1, without: tuple[str, ...] = ()
) -> Machine | None:
    """Return the amd64 machine type without accelerators that offers `need` to pods at the lowest on-demand
    price.

    Args:
        cloud: cloud of the machine types.
        region: region of the prices; if it has none, those of the cheapest known region determine the order.
        need: CPU and memory that one node must offer.
        least_vcpus: minimum number of vCPUs.
        without: excluded machine families.
    """

    def candidates() -> Iterator[tuple[float, Machine]]:
        for machine in map(partial(find_machine, cloud), machine_names(cloud)):
            if machine is None or machine.accelerator or not machine.allocatable().holds(need):
                continue
            is_arm = architecture(machine.cloud, machine.name) != AMD64
            if is_arm or machine.vcpus < least_vcpus or machine.family in without:
                continue
            price = find_price(cloud, region, machine.name) or lowest_price(cloud, machine.name)
            if price is not None and price.on_demand is not None:
                yield price.on_demand, machine

    return min(candidates(), key=lambda pair: pair[0], default=(0.0, None))[1]
