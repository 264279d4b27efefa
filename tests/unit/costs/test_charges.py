"""Cost of stacks, recomputed by hand from rows of the price table."""

import copy

import pulumi_gcp as gcp
import pytest

from ebbtide.analysis.charges import Charge, charges, gpu_hour
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog.amounts import Amount, total
from tests.declarations import AKS, GKE, changed
from tests.repository import ROOT
from tests.synth import synth, synth_stack


def _charges(recording: Recording) -> list[Charge]:
    return charges(recording, read_clusters(recording), read_pools(recording))


def _total(recording: Recording, name: str) -> Amount:
    return total(getattr(charge, name) for charge in _charges(recording))


def _disk(gib: int) -> float:
    """Return the price of a balanced disk at 0.1 USD per GiB-month of 730 hours."""
    return gib * 0.1 / 730


_CONTROL_PLANE, _NAT_ADDRESS, _NAT_NODE = 0.1, 0.005, 0.0014
_SMALL_SPOT = 0.010053
_T4_SPOT = 0.1814

_BY_HAND = {
    "Pulumi.dev.yaml": (
        _CONTROL_PLANE + _NAT_ADDRESS + _NAT_NODE + _SMALL_SPOT + _disk(30),
        _CONTROL_PLANE
        + _NAT_ADDRESS
        + 27 * _NAT_NODE
        + 3 * (_SMALL_SPOT + _disk(30))
        + 10 * (0.18424 + _disk(100))
        + 4 * (0.166888 + 4 * _T4_SPOT + _disk(100))
        + 10 * (2.02038 + _disk(100)),
    ),
    "examples/preemptible-pipelines/Pulumi.preemptible-pipelines.yaml": (
        0,
        4 * (0.06701 + _disk(100)) + 4 * (0.06701 + 2 * _T4_SPOT + _disk(100)),
    ),
    "examples/queued-gpus/Pulumi.queued-gpus.yaml": (
        _CONTROL_PLANE + _NAT_ADDRESS + _NAT_NODE + _SMALL_SPOT + _disk(20),
        _CONTROL_PLANE
        + _NAT_ADDRESS
        + 6 * _NAT_NODE
        + 3 * (_SMALL_SPOT + _disk(20))
        + (0.095 + 0.35 + _disk(20))  # flex-start of N1 and T4 is estimated from on demand
        + (2.02038 + _disk(20))
        + (4.790005 + _disk(20)),
    ),
    "examples/aks-spot/Pulumi.aks-spot.yaml": (
        0.025 + 0.005 + 2 * (0.384 + 0.027),
        # Spot is estimated from its share in West Europe.
        0.025 + 0.005 + 4 * (0.384 + 0.027) + 4 * (0.384 * 0.088704 / 0.48 + 0.027),
    ),
    "examples/checkpointed-training/Pulumi.checkpointed-training.yaml": (
        0,
        4 * (0.166888 + 4 * _T4_SPOT + _disk(100)),
    ),
    "examples/research-cluster/Pulumi.research-cluster.yaml": (
        _CONTROL_PLANE + _NAT_ADDRESS + _NAT_NODE + 0.018429 + _disk(30),
        _CONTROL_PLANE
        + _NAT_ADDRESS
        + 9 * _NAT_NODE
        + (0.018429 + _disk(30))
        + 8 * (0.418014 + 0.35 + _disk(100)),
    ),
}
"""By stack file: USD per hour idle and at most."""


@pytest.mark.parametrize("file", _BY_HAND)
def test_stacks_by_hand(file: str) -> None:
    """The dev stack and the five stories."""
    recording = synth_stack(ROOT / file)
    sums = (_total(recording, "idle").known, _total(recording, "maximum").known)
    assert sums == pytest.approx(_BY_HAND[file], abs=5e-6)


def test_unknown_prices_are_named() -> None:
    """An unknown price is never zero: the item is named, and the sum is a lower bound."""
    recording = synth_stack(ROOT / "examples/aks-spot/Pulumi.aks-spot.yaml")
    assert _total(recording, "maximum").unknown == ("disks of pipelines, 40 GiB",)
    queued = synth_stack(ROOT / "examples/queued-gpus/Pulumi.queued-gpus.yaml")
    assert _total(queued, "maximum").unknown == ()
    assert _total(queued, "maximum").estimated == ("n1-standard-2 (queued)", "nvidia-tesla-t4 (queued)")


def test_egress_by_a_route_table_has_no_address() -> None:
    """With userDefinedRouting no load balancer and no address are created or charged."""
    subnet = (
        "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/r"
        "/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
    )
    routed = copy.deepcopy(AKS)
    routed["cloud"] |= {
        "network": {"subnet": subnet},
        "overrides": {"networkProfile": {"outboundType": "userDefinedRouting"}},
    }
    recordings = [synth(declaration) for declaration in (AKS, routed)]
    items = [{charge.item for charge in _charges(recording)} for recording in recordings]
    assert items[0] - items[1] == {"load balancer"}
    assert not [item for item in recordings[1].resources if item.type.startswith("azure-native:network:")]


def test_the_tiers_of_aks() -> None:
    """The free tier is reported as free; the standard tier has a price."""
    stack = synth_stack(ROOT / "Pulumi.dev-aks.yaml")
    control_plane = next(charge for charge in _charges(stack) if charge.item == "control plane")
    assert (control_plane.idle.known, control_plane.idle.unknown, control_plane.note) == (0, (), "free tier")


def test_existing_resources_are_not_charged() -> None:
    """A cluster that the program only reads is on another bill."""

    def program() -> None:
        gcp.container.Cluster.get("theirs", "projects/acme/locations/us-central1/clusters/theirs")

    assert _charges(record(program, project="shop", stack="dev")) == []


def test_disks_of_addons() -> None:
    """Katib's database has a disk of 10 GiB on the cluster's disks."""
    recording = synth(changed(GKE, addons={"katib": {}}))
    disks = next(charge for charge in _charges(recording) if charge.item.startswith("disks of katib"))
    assert disks.idle.known == pytest.approx(_disk(10), abs=5e-6)


def test_a_gpu_hour() -> None:
    """A GPU with its share of the node; None for a pool without GPUs."""
    pools = {facts.name: gpu_hour(facts) for facts in read_pools(synth(GKE))}
    assert pools["cpu"] is None
    t4 = pools["t4"]
    assert t4 is not None
    assert t4.known == pytest.approx((0.166888 + 4 * _T4_SPOT + _disk(100)) / 4, abs=5e-6)
