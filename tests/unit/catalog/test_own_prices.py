"""A user's own prices in place of list prices."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.declaration.catalog import CloudKind, find_price, machine_price
from ebbtide.declaration.catalog.prices import (
    Price,
    PriceFileError,
    current_own_prices,
    lowest_price,
    own_prices,
    price_file,
    price_lookups,
)
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
            assert machine_price(CloudKind.GKE, region, "e2-small") == anywhere
        assert lowest_price(CloudKind.GKE, "e2-small") == find_price(CloudKind.GKE, "any", "e2-small")
    assert machine_price(CloudKind.GKE, "us-central1", "n2-standard-8") == before


def test_every_fault_is_reported_with_its_line(tmp_path: Path) -> None:
    """Cloud, region, item, rate, date, number of cells and repetition."""
    file = _file(
        tmp_path,
        "gke,us-central1,n2-standard-8,0.3,,2026-11",
        "gcp,us-central1,n2-standard-8,0.3,,2026-11",
        "gke,us-central1,n2-standrad-8,-1,cheap,",
        "gke,us-east-1,n2-standard-8,1_0,nan,yesterday",
        "gke,us-central1,n2-standard-8,0.4,,2026-13",
        "gke,us-east1,n2-standard-8,0.4,,2026-11-23,surplus",
        "gke,us-east1,n2-standard-8,0.4",
    )
    with pytest.raises(PriceFileError) as raised, own_prices(file):
        pass
    assert str(raised.value).splitlines() == [
        f"{file}:3: No cloud gcp is known. Write gke or aks.",
        f"{file}:4: No item n2-standrad-8 has a price; did you mean n2-standard-8?",
        f"{file}:4: usd_per_hour_on_demand is -1. Write a number of USD per hour that is not negative.",
        f"{file}:4: usd_per_hour_spot is cheap. Write a number of USD per hour that is not negative.",
        f"{file}:4: as_of is empty. Write the date of the price, such as 2026-11 or 2026-11-23.",
        f"{file}:5: No region us-east-1 is known; did you mean us-east1? Add a newer one to cloud.regions.",
        f"{file}:5: usd_per_hour_on_demand is 1_0. Write a number of USD per hour that is not negative.",
        f"{file}:5: usd_per_hour_spot is nan. Write a number of USD per hour that is not negative.",
        f"{file}:5: as_of is yesterday. Write the date of the price, such as 2026-11 or 2026-11-23.",
        f"{file}:6: as_of is 2026-13. Write the date of the price, such as 2026-11 or 2026-11-23.",
        f"{file}:6: The price is already in line 2. Remove one of the two.",
        f"{file}:7: The line has 7 cells, and the header has 6. Write one for each column.",
        f"{file}:8: The line has 4 cells, and the header has 6. Write one for each column.",
    ]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("cloud,region,item,price,as_of\n", "missing columns usd_per_hour_on_demand. unknown columns price."),
        (_HEAD.replace("as_of", "as_of,item"), "repeated columns item."),
        ("", "missing columns as_of, cloud, item, region, usd_per_hour_on_demand."),
    ],
)
def test_columns(tmp_path: Path, head: str, message: str) -> None:
    """Missing, unknown and repeated ones."""
    with pytest.raises(PriceFileError) as raised, own_prices(_file(tmp_path, head=head)):
        pass
    assert message in str(raised.value)


def test_a_spreadsheets_file_is_read(tmp_path: Path) -> None:
    """A byte order mark and carriage returns, which spreadsheets write, are no faults."""
    file = _file(tmp_path, "gke,us-central1,n2-standard-8,3e-1,.1,2026-11-23")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    with own_prices(file):
        price = machine_price(CloudKind.GKE, "us-central1", "n2-standard-8")
        assert price is not None
        assert (price.on_demand, price.spot) == (0.3, 0.1)


def test_a_new_regions_prices(tmp_path: Path) -> None:
    """A region that the declaration adds to the tables may have prices."""
    for name in ("__main__.py", "Pulumi.yaml", "components", "stacks"):
        (tmp_path / name).symlink_to(ROOT / name)
    _file(tmp_path, "gke,us-moon1,n2-standard-8,0.3,,2026-11")
    stack = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    stack["config"]["ebbtide:prices"] = "prices.csv"
    options = ["preview", "dev", "--cwd", str(tmp_path)]
    statuses: list[int] = []
    for regions in ([], [{"name": "us-moon1", "zones": ["us-moon1-a"]}]):
        stack["config"]["ebbtide:cluster"]["cloud"]["regions"] = regions
        (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack))
        statuses.append(CliRunner().invoke(app, options).exit_code)
    assert statuses == [2, 0]


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
    assert "prices.csv: The file cannot be read" in missing.stderr
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
