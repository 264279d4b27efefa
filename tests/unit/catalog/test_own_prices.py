"""A user's own prices in place of list prices."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebbtide.catalog import CloudKind, find_price, machine_price
from ebbtide.catalog.prices import (
    Price,
    PriceFileError,
    current_own_prices,
    lowest_price,
    own_prices,
    price_file,
    price_lookups,
)
from ebbtide.cli.entry_point import app
from tests.repository import ROOT

_HEAD = "cloud,region,item,usd_per_hour_on_demand,usd_per_hour_spot,as_of\n"


def _file(directory: Path, *lines: str, head: str = _HEAD) -> Path:
    file = directory / "prices.csv"
    file.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def test_rows_replace_list_prices_within_the_context(tmp_path: Path) -> None:
    """Others stay, and a row without a region applies in all of them."""
    file = _file(
        tmp_path, "gke,us-central1,n2-standard-8,0.3,0.1,2026-11", "gke,global,e2-small,0.001,,2026-11"
    )
    before = machine_price(CloudKind.GKE, "us-central1", "n2-standard-8")
    elsewhere = machine_price(CloudKind.GKE, "europe-west4", "n2-standard-8")
    with own_prices(file):
        price = machine_price(CloudKind.GKE, "us-central1", "n2-standard-8")
        assert price is not None
        assert (price.on_demand, price.spot, price.flex) == (0.3, 0.1, None)
        assert (price.as_of, price.source) == ("2026-11", str(file))
        assert machine_price(CloudKind.GKE, "europe-west4", "n2-standard-8") == elsewhere
        for region in ("us-central1", "asia-east1"):
            anywhere = find_price(CloudKind.GKE, region, "e2-small")
            assert anywhere is not None
            assert (anywhere.on_demand, anywhere.spot) == (0.001, None)
        assert lowest_price(CloudKind.GKE, "e2-small") == find_price(CloudKind.GKE, "any", "e2-small")
    assert machine_price(CloudKind.GKE, "us-central1", "n2-standard-8") == before


def test_every_fault_is_reported_with_its_line(tmp_path: Path) -> None:
    """Cloud, item, rate and date."""
    file = _file(
        tmp_path,
        "gke,us-central1,n2-standard-8,0.3,,2026-11",
        "gcp,us-central1,n2-standard-8,0.3,,2026-11",
        "gke,us-central1,n2-standrad-8,-1,cheap,",
    )
    with pytest.raises(PriceFileError) as raised, own_prices(file):
        pass
    assert str(raised.value).splitlines() == [
        f"{file}:3: No cloud gcp is known. Write gke or aks.",
        f"{file}:4: No item n2-standrad-8 is priced; did you mean n2-standard-8?",
        f"{file}:4: usd_per_hour_on_demand is -1. Write a number of USD per hour that is not negative.",
        f"{file}:4: usd_per_hour_spot is cheap. Write a number of USD per hour that is not negative.",
        f"{file}:4: as_of is empty. Write the date of the price, as 2026-11.",
    ]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("cloud,region,item,price,as_of\n", "missing columns usd_per_hour_on_demand. unknown columns price."),
        ("", "missing columns as_of, cloud, item, region, usd_per_hour_on_demand."),
    ],
)
def test_columns(tmp_path: Path, head: str, message: str) -> None:
    """Missing and unknown ones."""
    with pytest.raises(PriceFileError) as raised, own_prices(_file(tmp_path, head=head)):
        pass
    assert message in str(raised.value)


def test_a_stack_names_its_file(tmp_path: Path) -> None:
    """The cost of the preview follows; a missing file is one sentence and exit status 2."""
    for name in ("__main__.py", "Pulumi.yaml", "components", "stacks"):
        (tmp_path / name).symlink_to(ROOT / name)
    stack = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    (tmp_path / "Pulumi.dev.yaml").write_text(
        stack.replace("config:\n", "config:\n  ebbtide:prices: prices.csv\n")
    )
    options = ["preview", "dev", "--cwd", str(tmp_path)]
    missing = CliRunner().invoke(app, options)
    assert missing.exit_code == 2
    assert "prices.csv: the file cannot be read" in missing.stderr
    _file(tmp_path, "gke,us-central1,e2-small,0.9,0.5,2026-11")
    shown = CliRunner().invoke(app, options, env={"COLUMNS": "100"}).stdout
    assert "to 2026-11" in shown
    assert next(line for line in shown.splitlines() if line.startswith("system")).split()[-2] == "0.50"


def test_a_written_file_is_read_again(tmp_path: Path) -> None:
    """Rates to nine digits, unknown ones too; a machine type that the price table lacks may be priced."""
    prices = {
        ("gke", "us-central1", "n2-standard-8"): Price(0.388456, 0.1, None, "", "2026-11-22", "a list"),
        ("gke", "us-central1", "pd-balanced-gib"): Price(0.000136986, None, 0.0, "n", "2026-11", "a, b"),
        ("aks", "eastus", "Standard_NV6ads_A10_v5"): Price(None, 0.2, None, "", "2026-11", "c"),
    }
    file = tmp_path / "prices.csv"
    file.write_text(price_file(prices), encoding="utf-8")
    with own_prices(file):
        assert current_own_prices() == prices
    assert current_own_prices() == {}


def test_lookups_are_collected() -> None:
    """Known or not, by the region that they are of."""
    with price_lookups() as keys:
        machine_price(CloudKind.GKE, "us-central1", "e2-small")
        find_price(CloudKind.GKE, "nowhere", "nothing")
        find_price(CloudKind.GKE, "", "nat")
    machine_price(CloudKind.GKE, "us-central1", "e2-medium")
    assert keys == {
        ("gke", "us-central1", "e2-small"),
        ("gke", "nowhere", "nothing"),
        ("gke", "global", "nat"),
    }
