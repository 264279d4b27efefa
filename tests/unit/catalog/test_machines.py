"""The machine type that a message suggests."""

import pytest

from ebbtide.declaration.catalog import (
    CloudKind,
    Resources,
    cheapest,
    find_machine,
    machine_names,
    machine_price,
)

_REGIONS = {CloudKind.GKE: "us-central1", CloudKind.AKS: "eastus"}


@pytest.mark.parametrize("cloud", CloudKind)
@pytest.mark.parametrize(
    "need", [Resources(500, 500), Resources(1700, 5900), Resources(7000, 60_000)], ids=str
)
def test_the_cheapest_holds_what_is_needed_and_no_other_costs_less(cloud: CloudKind, need: Resources) -> None:
    """Every machine type without accelerators that holds the need costs as much or more, on demand."""
    region = _REGIONS[cloud]
    chosen = cheapest(cloud, region, need)
    assert chosen is not None
    assert chosen.allocatable().holds(need)
    assert not chosen.accelerator
    prices = [
        price.on_demand
        for machine in filter(None, (find_machine(cloud, name) for name in machine_names(cloud)))
        if not machine.accelerator and machine.allocatable().holds(need)
        if (price := machine_price(cloud, region, machine.name)) and price.on_demand is not None
    ]
    own = machine_price(cloud, region, chosen.name)
    assert own is not None
    assert own.on_demand == min(prices)
