"""Capacity reservations that a stack creates for a pool: the group, its use, its price, and its deletion."""

from contextlib import nullcontext
from typing import Any

import pytest

from components.aks import NodePool, NodePoolArgs
from ebbtide.analysis.charges import Charge, charges, rates_of
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.words import capacity_limit, cost_notes
from ebbtide.analysis.quotas import quotas
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.model.capacity import Reservation
from ebbtide.declaration.model.pool import Nodes, Pool
from ebbtide.declaration.model.site import Site
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, Declaration, only
from tests.synth import reviewed, synth, synth_anew
from tests.unit.catalog.test_prices import known
from tests.unit.components.aks.test_cluster import waited_for

GROUP = "azure-native:compute:CapacityReservationGroup"
RESERVATION = "azure-native:compute:CapacityReservation"
AGENT_POOL = "azure-native:containerservice:AgentPool"
MACHINE = "Standard_NC24ads_A100_v4"


def _declared(**pool: Any) -> Declaration:
    fields = {"zones": ["1", "2"], "nodes": {"min": 1, "max": 4}, "capacity": {"kind": "reservation"}}
    return only(AKS, machine=MACHINE, **(fields | pool))


def _price() -> float:
    return known(CloudKind.AKS, "eastus", MACHINE).on_demand or 0


def _charges(recording: Recording) -> dict[str, Charge]:
    found = charges(recording, read_clusters(recording), read_pools(recording))
    return {charge.item: charge for charge in found}


def test_a_regional_reservation_of_a_system_pool() -> None:
    """Without zones there is a single reservation, and the cluster with its system pool depends on it."""
    pools = [{**AKS["pools"][0], "capacity": {"kind": "reservation"}}, *AKS["pools"][1:]]
    recording = synth(AKS | {"pools": pools})
    (reservation,) = recording.of_type(RESERVATION)
    assert "zones" not in reservation.inputs
    (cluster,) = recording.of_type("azure-native:containerservice:ManagedCluster")
    (group,) = recording.of_type(GROUP)
    profiles: Any = cluster.inputs["agentPoolProfiles"]
    assert profiles[0]["capacityReservationGroupID"] == group.id
    assert reservation.name in waited_for(recording, cluster)


def test_a_pool_of_its_own_needs_the_group() -> None:
    """A standalone pool is refused without the group that its program creates."""
    nodes = Nodes(max=2)
    pool = Pool(name="work", machine=MACHINE, nodes=nodes, capacity=Reservation())

    def program(group: str | None) -> None:
        site = Site("aks", "eastus")
        args = NodePoolArgs(pool=pool, site=site, cluster="c", resource_group="r", reservation=group)
        NodePool("work", args)

    with pytest.raises(ProgramError, match="CapacityReservation"):
        record(lambda: program(None), project="p", stack="s")
    (made,) = record(lambda: program("/g"), project="p", stack="s").of_type(AGENT_POOL)
    assert made.inputs["capacityReservationGroupID"] == "/g"


def test_reserved_machines_are_billed_idle() -> None:
    """The reservation costs its maximum at the price on demand without work too, its nodes their disks alone,
    and it needs the quota of its machines."""
    recording = synth(_declared())
    found = _charges(recording)
    reserved = found["reservation of pool work"]
    assert reserved.idle == reserved.maximum == reserved.on_demand
    assert reserved.idle.known == pytest.approx(4 * _price())
    disk = found["pool work"].maximum.known / 4
    assert 0 < disk < 0.1
    rates = rates_of(recording)
    assert rates.at({"work": 4}, clock.now()).known - rates.at(
        {"work": 0}, clock.now()
    ).known == pytest.approx(4 * disk)
    preview = preview_of(recording)
    hour, month = f"${4 * _price():.2f} per hour", f"${4 * _price() * 730:,.0f} per month"
    (words,) = dict(cost_notes(preview))["Reserved"]
    assert words == f"reservation of pool work, {hour} ({month}): until the pool is removed, used or not"
    (report,) = [pool for pool in preview.pools if pool.name == "work"]
    assert capacity_limit(report) == "reservation of its own"
    by_name = {quota.name: quota.amount for quota in quotas(read_pools(recording))}
    assert by_name["StandardNCADSA100v4Family"] == 4 * 24


def test_commitments_pay_for_reserved_machines() -> None:
    """A commitment is used by the reservation, whether nodes use it or not."""
    commitment = {"machines": MACHINE, "count": 3, "usdPerHour": 1.0}
    recording = synth(_declared() | {"commitments": [commitment]})
    found = _charges(recording)
    assert found["reservation of pool work"].idle.known == pytest.approx(_price())
    assert found[f"commitment of 3 {MACHINE}"].note.startswith("3 used idle, 3 at most")
    assert found["pool work"] == _charges(synth(_declared()))["pool work"]
    assert rates_of(recording).of_nodes({"work": 0}) == Amount()


def test_a_review_says_what_is_billed() -> None:
    """A review of a new reservation says that it is billed used or not."""
    plain = only(AKS, machine=MACHINE)
    held = {**_declared()["pools"][-1], "name": "held"}
    words = f"reserves 2 x {MACHINE}: billed until the pool is removed, used or not."
    difference = reviewed(plain, plain | {"pools": [*plain["pools"], held]}).difference
    assert difference is not None
    assert [text for text in difference.consequences if words in text]


def test_a_pool_that_leaves_its_reservation_needs_another_name() -> None:
    """A preview does not advise `ebbtide up`, which would refuse the replacement."""
    difference = reviewed(_declared(), _declared(capacity="on-demand")).difference
    assert difference is not None
    (text,) = difference.consequences
    assert text.startswith("AKS cannot change these fields of the node pool work: capacity.name ")
    assert "with its workloads. Declare it with another name: " in text


def test_a_replacement_beside_it_is_refused() -> None:
    """A pool is not replaced under its name while the old one uses its reservation."""
    (group,) = synth(_declared()).of_type(GROUP)
    inputs = {"capacityReservationGroupID": str(group.id).lower()}
    for replaced, is_refused in ((inputs, True), ({}, False)):
        replacements = {"work": {"name": "work2", "nodes": 1, "inputs": replaced}}
        expected = pytest.raises(ProgramError, match="cannot be replaced under its name")
        with expected if is_refused else nullcontext():
            synth_anew(_declared(capacity="on-demand"), replacements=replacements)
