"""The machine type that a message suggests."""

import json

import pytest
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.declaration.catalog.locations import Locations, carbon
from ebbtide.declaration.catalog.machine_offers import accelerator_types, cheapest, machine_offers
from ebbtide.declaration.catalog.machines import AMD64, architecture, find_machine, machine_names
from ebbtide.declaration.catalog.prices import find_price, priced_regions
from ebbtide.declaration.catalog.resources import Resources
from ebbtide.values.cloud_kind import CloudKind
from tests.repository import ROOT
from tests.unit.catalog.test_prices import known, output

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
        if architecture(cloud, machine.name) == AMD64
        if (price := find_price(cloud, region, machine.name)) and price.on_demand is not None
    ]
    assert known(cloud, region, chosen.name).on_demand == min(prices)


def test_attached_accelerators_are_part_of_the_price() -> None:
    """N1 with four T4 costs the machine and four times the accelerator."""
    (offer,) = [
        offer
        for offer in machine_offers(CloudKind.GKE, gpu="t4", region="us-central1")
        if (offer.machine, offer.count) == ("n1-highmem-8", 4)
    ]
    machine, accelerator = (
        known(CloudKind.GKE, "us-central1", item) for item in ("n1-highmem-8", "gpu:nvidia-tesla-t4")
    )
    assert offer.on_demand == pytest.approx((machine.on_demand or 0) + 4 * (accelerator.on_demand or 0))
    assert offer.spot == pytest.approx((machine.spot or 0) + 4 * (accelerator.spot or 0))
    assert offer.accelerator_memory_gib == 16
    assert offer.locations == ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f")


@pytest.mark.parametrize("cloud", CloudKind)
def test_every_accelerator_has_a_machine(cloud: CloudKind) -> None:
    """The cheapest is first, unknown prices last."""
    for accelerator in accelerator_types(cloud):
        offers = [
            offer for offer in machine_offers(cloud, gpu=accelerator) if offer.accelerator == accelerator
        ]
        assert offers
        prices = [offer.on_demand for offer in offers]
        known = [price for price in prices if price is not None]
        assert prices == [*sorted(known), *[None] * (len(prices) - len(known))]


def test_without_a_region_the_cheapest_one_applies() -> None:
    """The price is that of the cheapest region with a known price."""
    (offer,) = [offer for offer in machine_offers(CloudKind.GKE) if offer.machine == "n2-standard-8"]
    prices = {
        region: price.on_demand
        for region in priced_regions(CloudKind.GKE, "n2-standard-8")
        if (price := find_price(CloudKind.GKE, region, "n2-standard-8")) and price.on_demand
    }
    assert offer.on_demand == min(prices.values()) == prices[offer.region]


def test_a_region_without_the_accelerator_has_no_machine() -> None:
    """Exit status 1, in one line."""
    result = CliRunner().invoke(app, ["machines", "--gpu", "t4", "--region", "africa-south1"])
    assert (result.exit_code, result.stdout) == (1, "No machine type with t4 in africa-south1.\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--gpu", "nvidia-tesla-p44"],
            "No accelerator nvidia-tesla-p44 is known; did you mean nvidia-tesla-p4?",
        ),
        (["--region", "us-centrl1"], "No region us-centrl1 is known; did you mean us-central1?"),
        (["--region", "us-central1", "--cloud", "aks"], "us-central1 is a region of GKE: omit --cloud."),
    ],
)
def test_unknown_names(options: list[str], message: str) -> None:
    """Exit status 2, in one sentence."""
    result = CliRunner().invoke(app, ["machines", *options])
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


def test_as_text_and_json() -> None:
    """Both have the same machines; text fits 80 columns."""
    options = ("machines", "--gpu", "a100", "--cloud", "gke")
    text, offers = output(*options), json.loads(output(*options, "--format", "json"))
    assert all(offer["machine"] in text for offer in offers)
    assert max(map(len, text.splitlines())) <= 80
    assert "List prices of " in text


def test_regions_by_carbon() -> None:
    """Regions that offer the accelerator, the cleanest grid first, within 80 columns; figures in JSON."""
    options = ("machines", "--gpu", "t4", "--carbon")
    text, offers = output(*options), json.loads(output(*options, "--format", "json"))
    grids = [offer["carbon"]["grid_g_per_kwh"] for offer in offers]
    assert grids == sorted(grids)
    assert {offer["accelerator"] for offer in offers} == {"nvidia-tesla-t4"}
    priced = [offer["region"] for offer in offers if offer["on_demand"] or offer["spot"]]
    regions = [line.split()[0] for line in text.partition("\n\n")[0].splitlines()[1:]]
    assert regions == priced
    assert "?" not in text
    named = " ".join(text.split()).partition("grid first: ")[2].partition(".")[0].split(", ")
    assert named == [offer["region"] for offer in offers if offer["region"] not in priced]
    assert max(map(len, text.splitlines())) <= 80
    (central,) = [offer for offer in offers if offer["region"] == "us-central1"]
    assert central["carbon"] == {"carbon_free": 0.88, "grid_g_per_kwh": 431.95, "as_of": "2025"}


def test_every_region_of_google_cloud_has_its_carbon() -> None:
    """Google publishes it for each; Azure publishes none, which is said."""
    assert set(carbon()) == set(Locations(CloudKind.GKE).regions())
    result = CliRunner().invoke(app, ["machines", "--carbon", "--cloud", "aks"])
    assert (result.exit_code, result.stderr) == (
        2,
        "Azure publishes no carbon data of its regions: omit --carbon.\n",
    )


@pytest.mark.parametrize(
    "words",
    [
        ("preview", "dev", "--cwd", str(ROOT)),
        ("preview", "dev-aks", "--cwd", str(ROOT)),
        ("machines", "--gpu", "t4"),
        ("machines", "--gpu", "a100"),
        ("machines", "--gpu", "t4", "--carbon"),
    ],
    ids=" ".join,
)
def test_a_narrow_terminal_breaks_no_word(words: tuple[str, ...]) -> None:
    """Tables of 60 columns have the words and numbers of wide ones, none of them cut or broken."""
    narrow, wide = (output(*words, columns=columns) for columns in (60, 200))
    assert max(map(len, narrow.splitlines())) <= 60 or words[0] == "machines"  # zones are one line
    assert "…" not in narrow
    assert {word.strip(";,") for word in narrow.split()} <= {
        word.strip(";,") for word in (*wide.split(), *wide.lower().split())
    }
