"""Commitments: their charge, the parts of nodes that they pay for, and the use above which they pay."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.analysis.charges import Charge, charges, rates_of
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.words import cost_notes
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.declaration.catalog.amounts import Amount, Coverage, Use, covered, total
from ebbtide.declaration.catalog.prices import find_price
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, GKE, Declaration, only
from tests.synth import synth


def _charges(declaration: Declaration) -> dict[str, Charge]:
    recording = synth(declaration)
    found = charges(recording, read_clusters(recording), read_pools(recording))
    return {charge.item: charge for charge in found}


def _listed(cloud: CloudKind, region: str, item: str) -> float:
    price = find_price(cloud, region, item)
    assert price is not None
    assert price.on_demand is not None
    return price.on_demand


@pytest.mark.parametrize(
    ("base", "cloud", "region", "machine"),
    [
        (GKE, CloudKind.GKE, "us-central1", "n2-standard-8"),
        (AKS, CloudKind.AKS, "eastus", "Standard_D8s_v5"),
    ],
)
def test_committed_machines_cost_their_price_alone(
    base: Declaration, cloud: CloudKind, region: str, machine: str
) -> None:
    """A commitment is paid used or not, and the machines that it covers cost nothing more."""
    listed = _listed(cloud, region, machine)
    plain = only(base, machine=machine, nodes={"min": 1, "max": 5})
    usd = round(listed / 2, 4)
    before = _charges(plain)
    after = _charges(plain | {"commitments": [{"machines": machine, "count": 3, "usdPerHour": usd}]})
    own = after[f"commitment of 3 {machine}"]
    assert own.idle == own.maximum == Amount(usd * 3)
    assert own.on_demand == Amount()
    assert own.note == "1 used idle, 3 at most; it pays above 50 % use"
    pool, listed_pool = after["pool work"], before["pool work"]
    assert listed_pool.idle.known - pool.idle.known == pytest.approx(listed)
    assert listed_pool.maximum.known - pool.maximum.known == pytest.approx(3 * listed)
    assert pool.on_demand == listed_pool.on_demand
    assert {item: charge for item, charge in before.items() if item != "pool work"} == {
        item: charge for item, charge in after.items() if item not in ("pool work", own.item)
    }


def test_committed_accelerators() -> None:
    """A commitment of attached accelerators pays for these alone, and one of another region costs nothing."""
    t4 = _listed(CloudKind.GKE, "us-central1", "gpu:nvidia-tesla-t4")
    accelerator = {"type": "nvidia-tesla-t4", "count": 2}
    plain = only(GKE, machine="n1-standard-8", accelerator=accelerator, nodes={"max": 2})
    commitment = {"gpus": "nvidia-tesla-t4", "count": 8, "usdPerHour": 0.2}
    after = _charges(plain | {"commitments": [commitment, commitment | {"region": "europe-west4"}]})
    saved = _charges(plain)["pool work"].maximum.known - after["pool work"].maximum.known
    assert saved == pytest.approx(4 * t4)
    (own,) = [charge for charge in after.values() if charge.committed]
    assert own.note == f"0 used idle, 4 at most, and 4 never; it pays above {20 / t4:.0f} % use"


def test_spot_is_not_covered() -> None:
    """Spot machines have a price of their own, and leave a commitment unused."""
    declaration = only(GKE, machine="n2-standard-8", capacity="spot")
    commitment = {"machines": "n2-standard-8", "count": 1, "usdPerHour": 0.2}
    after = _charges(declaration | {"commitments": [commitment]})
    assert after["pool work"] == _charges(declaration)["pool work"]
    assert after["commitment of 1 n2-standard-8"].note == "0 used idle, 0 at most, and 1 never"


def test_a_commitment_in_previews_and_in_the_cost_now() -> None:
    """A preview names the commitment and its use, and the cost at node counts is without what it covers."""
    listed = _listed(CloudKind.GKE, "us-central1", "n2-standard-8")
    declaration = only(GKE, machine="n2-standard-8", nodes={"max": 5})
    commitment = {"machines": "n2-standard-8", "count": 2, "usdPerHour": 0.1}
    recording = synth(declaration | {"commitments": [commitment]})
    (words,) = dict(cost_notes(preview_of(recording)))["Committed"]
    use = f"0 used idle, 2 at most; it pays above {10 / listed:.0f} % use"
    assert words == f"commitment of 2 n2-standard-8, $0.20 per hour: {use}"
    with_it, without = rates_of(recording), rates_of(synth(declaration))
    for nodes in range(5):
        costs = [rates.at({"work": nodes}, clock.now()).known for rates in (with_it, without)]
        assert costs[0] - costs[1] == pytest.approx(0.2 - min(nodes, 2) * listed)


_USES = st.dictionaries(
    st.sampled_from("abc"),
    st.builds(Use, st.integers(1, 8), st.sampled_from(["machine", "accelerators"]), st.just(Amount(2.0))),
)
_COMMITMENTS = st.lists(st.builds(Coverage, st.just("x"), st.integers(1, 9), st.just(1.0), _USES), max_size=4)


@given(_COMMITMENTS, st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)))
def test_no_node_is_paid_for_twice(commitments: list[Coverage], nodes: dict[str, int]) -> None:
    """Commitments are used up to their count, and save at most what the nodes' parts cost."""
    effect = covered(commitments, nodes)
    for commitment, used in zip(commitments, effect.used, strict=True):
        assert -1e-9 <= used <= commitment.count
    for name, saved in effect.saved.items():
        parts: Any = {use.part for item in commitments for pool, use in item.uses.items() if pool == name}
        assert -1e-9 <= saved <= 2.0 * nodes.get(name, 0) * len(parts) + 1e-9
    rest = total(effect.rest(name, Amount(4.0 * count)) for name, count in nodes.items())
    assert rest.known == pytest.approx(4.0 * sum(nodes.values()) - sum(effect.saved.values()))
