"""Facts of a preview in words."""

import pytest

from ebbtide.analysis.preview.preview_document import (
    AcceleratorReport,
    AmountReport,
    NodesReport,
)
from ebbtide.analysis.preview.words import (
    accelerator_words,
    amount_words,
    capacity_limit,
    name_below,
    nodes_words,
    type_words,
)
from tests.unit.review.reviews import dev

_POOL = dev().pools[0].model_copy(update={"capacity": "spot"})


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("gcp:container/nodePool:NodePool", "gcp.container.NodePool"),
        ("gcp:projects/iAMMember:IAMMember", "gcp.projects.IAMMember"),
        ("azure-native:containerservice:AgentPool", "azure-native.containerservice.AgentPool"),
        ("kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue", "kubernetes.LocalQueue"),
        ("pulumi:providers:gcp", "provider gcp"),
        ("ebbtide:gke:NodePool", "ebbtide.gke.NodePool"),
        ("my-component", "my-component"),
    ],
)
def test_type_tokens(token: str, words: str) -> None:
    """Type tokens are formatted as readable words."""
    assert type_words(token) == words


@pytest.mark.parametrize(
    ("name", "parent", "below"),
    [
        ("train-network-nat", "train-network", "…-nat"),
        ("train", "train", "…"),
        ("training", "train", "training"),
        ("vpc", "train", "vpc"),
        ("train.sub", "train", "….sub"),
        ("train", None, "train"),
    ],
)
def test_names_go_on_from_their_parents(name: str, parent: str | None, below: str) -> None:
    """Only where the parent's is followed by something that divides words."""
    assert name_below(name, parent) == below


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"max_price": 0.25}, "at most 0.25 USD/h"),
        ({"capacity": "queued", "max_run_seconds": 604800}, "up to 7 days"),
        ({"capacity": "preemptible", "max_run_seconds": 86400}, "up to 1 day"),
        ({"capacity": "flex-start", "max_run_seconds": 7200}, "up to 2 hours"),
        ({"capacity": "flex-start", "max_run_seconds": 5400}, "up to 90 minutes"),
        ({"capacity": "reservation", "reservation": "projects/p/reservations/h100"}, "reservation h100"),
        (
            {"capacity": "reservation", "reservation": "projects/p/reservations/a4/reservationBlocks/b1"},
            "reservation a4/reservationBlocks/b1",
        ),
        ({"capacity": "reservation", "reservation": "any"}, "reservation any"),
    ],
)
def test_capacity(change: dict[str, object], words: str) -> None:
    """The limits of a capacity type; nothing for spot machines at any price."""
    assert capacity_limit(_POOL.model_copy(update=change)) == words


def test_nodes() -> None:
    """A range, or a number."""
    assert nodes_words(NodesReport(minimum=0, maximum=4, fixed=None, initial=0)) == "0 to 4"
    assert nodes_words(NodesReport(minimum=1, maximum=None, fixed=None, initial=None)) == "1 to ?"
    assert nodes_words(NodesReport(minimum=None, maximum=None, fixed=3, initial=3)) == "3"


def test_accelerators() -> None:
    """Count and type of accelerators; nothing for a CPU pool."""
    assert accelerator_words(_POOL) == ""
    pool = _POOL.model_copy(
        update={"accelerator": AcceleratorReport(type="nvidia-l4", count=2, requestable=2)}
    )
    assert accelerator_words(pool) == "2 x nvidia-l4"
    shared = AcceleratorReport(type="nvidia-l4", count=2, sharing="time-sharing by 8", requestable=16)
    pool = _POOL.model_copy(update={"accelerator": shared})
    assert accelerator_words(pool) == "2 x nvidia-l4 (time-sharing by 8)"
    chips = AcceleratorReport(type="tpu-v5-lite-podslice", count=4, topology="4x4", requestable=4)
    pool = _POOL.model_copy(update={"accelerator": chips})
    assert accelerator_words(pool) == "4 x tpu-v5-lite-podslice (slices of 4x4)"


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (None, "-"),
        (AmountReport(usd=0.12), "88"),
        (AmountReport(usd=26.1302), "19,075"),
        (AmountReport(usd=0.0014), "1.02"),
        (AmountReport(usd=0.37, unknown=("disk",)), ">270"),
        (AmountReport(usd=0, unknown=("disk",)), "?"),
    ],
)
def test_amounts_per_month(amount: AmountReport | None, words: str) -> None:
    """A month has 730 hours; amounts of ten dollars and more have no cents."""
    assert amount_words(amount, monthly=True) == words
