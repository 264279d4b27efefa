"""Estimated spot prices of AKS machines, and their marks wherever an amount is shown."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebbtide.analysis.costs.charges import charges
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.cli.entry_point import app
from ebbtide.declaration.catalog import CloudKind, machine_price
from ebbtide.declaration.catalog.amounts import PricedNode, total
from ebbtide.declaration.catalog.prices import own_prices
from ebbtide.declaration.catalog.tables import rows
from tests.repository import ROOT
from tests.synth import synth_stack

_FILE = ROOT / "examples" / "aks-spot" / "Pulumi.aks-spot.yaml"
_ITEM = "Standard_D8s_v3 (spot)"


def _machines() -> list[dict[str, str]]:
    """The table's rows of AKS machines."""
    return [row for row in rows("prices") if row["cloud"] == "aks" and row["item"].startswith("Standard_")]


def test_every_machine_that_is_sold_as_spot_has_a_spot_price() -> None:
    """A known price stays; an unknown one is the on-demand price, times the highest share that spot has of it
    in a region with both; B series machines are not sold as spot (Azure docs, spot-vms, 2026)."""
    for row in _machines():
        price = machine_price(CloudKind.AKS, row["region"], row["item"])
        assert price is not None
        shares = [
            float(other["usd_per_hour_spot"]) / float(other["usd_per_hour_on_demand"])
            for other in _machines()
            if other["item"] == row["item"] and other["usd_per_hour_spot"]
        ]
        if row["usd_per_hour_spot"]:
            assert (price.spot, price.spot_estimated) == (float(row["usd_per_hour_spot"]), False)
        elif row["item"].startswith("Standard_B") or row["item"] == "Standard_ND96isr_H200_v5":
            assert (price.spot, shares) == (None, [])
        else:
            assert price.on_demand is not None
            assert price.spot == pytest.approx(price.on_demand * max(shares), abs=1e-6)
            assert price.is_estimated("spot")
            assert not price.is_estimated("on-demand")


def test_a_queued_t4_has_an_estimate() -> None:
    """Without a flex-start price, a node costs about as much as on demand, with that mark; the same price is
    what a rehearsal bills."""
    node = PricedNode(
        cloud=CloudKind.GKE,
        location="us-central1",
        machine="n1-standard-2",
        accelerator="nvidia-tesla-t4",
        accelerators=1,
    )
    amount = node.machine_amount("queued")
    assert amount.known == pytest.approx(node.machine_amount("on-demand").known)
    assert (amount.unknown, amount.estimated) == (
        (),
        ("n1-standard-2 (queued)", "nvidia-tesla-t4 (queued)"),
    )
    listed = machine_price(CloudKind.GKE, "us-central1", "a3-highgpu-8g")
    assert listed is not None
    assert listed.flex is not None
    assert not listed.is_estimated("queued")
    shown = CliRunner().invoke(app, ["machines", "--gpu", "t4", "--region", "us-central1", "--cloud", "gke"])
    assert "flex-start from that on demand" in " ".join(shown.stdout.split())


def test_a_users_own_price_is_no_estimate(tmp_path: Path) -> None:
    """A row without a spot price leaves it unknown, and one with it is known."""
    file = tmp_path / "prices.csv"
    columns = ("cloud", "region", "item", "usd_per_hour_on_demand", "usd_per_hour_spot", "as_of")
    for spot, expected in (("", None), ("0.05", 0.05)):
        with file.open("w", newline="") as written:
            csv.writer(written).writerows(
                [columns, ("aks", "eastus", "Standard_D8s_v3", 0.4, spot, "2026-11")]
            )
        with own_prices(file):
            price = machine_price(CloudKind.AKS, "eastus", "Standard_D8s_v3")
        assert price is not None
        assert (price.spot, price.spot_estimated) == (expected, False)


def _output(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_preview_marks_estimates() -> None:
    """The pool, the sum and the item are marked in text and JSON; the idle cost has no estimate."""
    text = _output("preview", "--config-file", str(_FILE))
    assert "~0.39" in text
    assert f"Estimated price: {_ITEM}" in text
    preview = json.loads(_output("preview", "--config-file", str(_FILE), "--format", "json"))
    assert preview["cost"]["maximum"]["estimated"] == [_ITEM]
    assert preview["cost"]["idle"]["estimated"] == []


@pytest.mark.parametrize(
    ("kind", "marks"),
    [
        ("text", [">~2.07 at most", f"Estimated price: {_ITEM}"]),
        ("markdown", ["at least about &#36;2.07/h at most", f"**Estimated price:** {_ITEM}"]),
        ("html", ["~0.39", f"<strong>Estimated price:</strong> {_ITEM}."]),
    ],
)
def test_the_review_marks_estimates(kind: str, marks: list[str]) -> None:
    """Sums and items are marked in every format."""
    text = _output("review", "--config-file", str(_FILE), "--format", kind)
    assert [mark for mark in marks if mark not in text.replace("\\_", "_")] == []


def test_a_limit_is_compared_with_an_estimate() -> None:
    """A sum of a known and an estimated price is an estimate, and so is one of several nodes."""
    recording = synth_stack(_FILE)
    (spot,) = [
        charge.maximum
        for charge in charges(recording, read_clusters(recording), read_pools(recording))
        if charge.pool == "spotnodepool"
    ]
    assert (spot * 2).estimated == total([spot, spot]).estimated == (_ITEM,)
