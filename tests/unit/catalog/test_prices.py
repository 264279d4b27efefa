"""A user's own prices in place of list prices."""

import json
from operator import itemgetter
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from ebbtide.analysis.charges import charges
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.cli.entry_point import app
from ebbtide.declaration.catalog.amounts import PricedNode, total
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.catalog.machines import find_machine, machine_names
from ebbtide.declaration.catalog.prices import (
    Price,
    PriceFileError,
    components,
    current_own_prices,
    find_price,
    lowest_price,
    own_prices,
    price_file,
    price_lookups,
    priced_regions,
    regions_with_prices,
)
from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind
from tests.repository import ROOT
from tests.synth import synth_stack

_HEAD = "cloud,region,item,usd_per_hour_on_demand,usd_per_hour_spot,as_of\n"


def _file(directory: Path, *lines: str, head: str = _HEAD) -> Path:
    file = directory / "prices.csv"
    file.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def known(cloud: CloudKind, region: str, item: str) -> Price:
    """The price of an item that has one."""
    price = find_price(cloud, region, item)
    assert price is not None
    return price


def output(*words: str, columns: int = 80) -> str:
    """The output of a command that succeeds."""
    result = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_rows_replace_list_prices_within_the_context(tmp_path: Path) -> None:
    """Others stay, a row without a region applies in all of them, and one without a spot price leaves it
    unknown, not estimated."""
    file = _file(
        tmp_path,
        "gke,us-central1,n2-standard-8,0.3,0.1,2026-11",
        "gke,global,e2-small,0.001,,2026-11",
        "aks,eastus,Standard_D8s_v3,0.4,,2026-11",
        "aks,westus2,Standard_D8s_v3,0.4,0.05,2026-11",
    )
    before = find_price(CloudKind.GKE, "us-central1", "n2-standard-8")
    elsewhere = find_price(CloudKind.GKE, "europe-west4", "n2-standard-8")
    with own_prices(file):
        price = known(CloudKind.GKE, "us-central1", "n2-standard-8")
        assert (price.on_demand, price.spot, price.flex) == (0.3, 0.1, None)
        assert (price.as_of, price.source) == ("2026-11", str(file))
        assert find_price(CloudKind.GKE, "europe-west4", "n2-standard-8") == elsewhere
        for region in ("us-central1", "asia-east1"):
            anywhere = known(CloudKind.GKE, region, "e2-small")
            assert (anywhere.on_demand, anywhere.spot) == (0.001, None)
            assert find_price(CloudKind.GKE, region, "e2-small") == anywhere
        for region, spot in (("eastus", None), ("westus2", 0.05)):
            own = known(CloudKind.AKS, region, "Standard_D8s_v3")
            assert (own.spot, own.spot_estimated) == (spot, False)
        assert lowest_price(CloudKind.GKE, "e2-small") == find_price(CloudKind.GKE, "any", "e2-small")
    assert find_price(CloudKind.GKE, "us-central1", "n2-standard-8") == before


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
    """A byte order mark and carriage returns, which spreadsheets write, are not faults."""
    file = _file(tmp_path, "gke,us-central1,n2-standard-8,3e-1,.1,2026-11-23")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    with own_prices(file):
        price = known(CloudKind.GKE, "us-central1", "n2-standard-8")
        assert (price.on_demand, price.spot) == (0.3, 0.1)


def _previewed(directory: Path) -> list[str]:
    """Make a directory the repository's project without a stack, and return the command of its preview."""
    for name in ("__main__.py", "Pulumi.yaml", "components", "stacks"):
        (directory / name).symlink_to(ROOT / name)
    return ["preview", "dev", "--cwd", str(directory)]


def test_a_new_regions_prices(tmp_path: Path) -> None:
    """A region that the declaration adds to the tables may have prices."""
    options = _previewed(tmp_path)
    _file(tmp_path, "gke,us-moon1,n2-standard-8,0.3,,2026-11")
    stack = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    stack["config"]["ebbtide:prices"] = "prices.csv"
    statuses: list[int] = []
    for regions in ([], [{"name": "us-moon1", "zones": ["us-moon1-a"]}]):
        stack["config"]["ebbtide:cluster"]["cloud"]["regions"] = regions
        (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack))
        statuses.append(CliRunner().invoke(app, options).exit_code)
    assert statuses == [2, 0]


def test_a_stack_names_its_file(tmp_path: Path) -> None:
    """The cost of the preview follows; a missing file is one sentence and exit status 2."""
    options = _previewed(tmp_path)
    stack = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    (tmp_path / "Pulumi.dev.yaml").write_text(
        stack.replace("config:\n", "config:\n  ebbtide:prices: prices.csv\n")
    )
    missing = CliRunner().invoke(app, options)
    assert missing.exit_code == 2
    assert "prices.csv: The file cannot be read" in missing.stderr
    _file(tmp_path, "gke,us-central1,e2-small,0.9,0.5,2026-11")
    shown = output(*options, columns=100)
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
        find_price(CloudKind.GKE, "us-central1", "e2-small")
        find_price(CloudKind.GKE, "nowhere", "nothing")
        find_price(CloudKind.GKE, "", "nat")
    find_price(CloudKind.GKE, "us-central1", "e2-medium")
    assert keys == {
        ("gke", "us-central1", "e2-small"),
        ("gke", "nowhere", "nothing"),
        ("gke", "global", "nat"),
    }


_FILE = ROOT / "examples" / "aks-spot" / "Pulumi.aks-spot.yaml"
_ITEM = "Standard_D8s_v3 (spot)"


def test_every_machine_that_is_sold_as_spot_has_a_spot_price() -> None:
    """A known price stays; an unknown one is the on-demand price, times the highest share that spot has of it
    in a region with both, or on others of its family; B series machines are not sold as spot (Azure docs,
    spot-vms, 2026)."""
    table = [row for row in rows("prices") if row["cloud"] == "aks" and row["item"].startswith("Standard_")]
    families = {row["machine_type"]: row["family"] for row in rows("machines") if row["cloud"] == "aks"}
    shares: dict[str, float] = {}
    for row in filter(itemgetter("usd_per_hour_spot"), table):
        share = float(row["usd_per_hour_spot"]) / float(row["usd_per_hour_on_demand"])
        for name in (row["item"], families[row["item"]]):
            shares[name] = max(share, shares.get(name, 0.0))
    for row in table:
        price = known(CloudKind.AKS, row["region"], row["item"])
        if row["usd_per_hour_spot"]:
            assert (price.spot, price.spot_estimated) == (float(row["usd_per_hour_spot"]), False)
        elif row["item"].startswith("Standard_B"):
            assert (price.spot, row["item"] in shares) == (None, False)
        else:
            assert price.on_demand is not None
            share = shares.get(row["item"]) or shares[families[row["item"]]]
            assert price.spot == pytest.approx(price.on_demand * share, abs=1e-6)
            assert price.is_estimated("spot")
            assert not price.is_estimated("on-demand")


_UNLISTED = {"us-central2", "centraluseuap", "eastus2euap", "denmarkeast"} | {
    f"usgov{state}" for state in ("arizona", "texas", "virginia")
}


@pytest.mark.parametrize("cloud", CloudKind)
def test_every_region_has_prices(cloud: CloudKind) -> None:
    """But for regions that are not sold to all."""
    assert {*Locations(cloud).regions()} - {*regions_with_prices(cloud)} <= _UNLISTED


def test_no_price_of_azure_is_that_of_windows() -> None:
    """A vCPU costs about the same on every size of a series in a region; Windows adds a quarter and more."""
    sizes: dict[tuple[str, str, float], dict[str, float]] = {}
    for machine in (find_machine(CloudKind.AKS, name) for name in machine_names(CloudKind.AKS)):
        assert machine is not None
        if machine.accelerator or machine.name == "Standard_B2s":
            continue
        for region in priced_regions(CloudKind.AKS, machine.name):
            price = known(CloudKind.AKS, region, machine.name)
            ratio = round(machine.memory_gib / machine.vcpus) if machine.family == "DSv2" else 0
            group = sizes.setdefault((region, machine.family, ratio), {})
            group[machine.name] = (price.on_demand or 0.0) / machine.vcpus
    mixed = [(key, group) for key, group in sizes.items() if max(group.values()) > 1.25 * min(group.values())]
    assert mixed == []


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
    assert (amount.unknown, amount.estimated) == ((), ("n1-standard-2 (queued)", "nvidia-tesla-t4 (queued)"))
    listed = known(CloudKind.GKE, "us-central1", "a3-highgpu-8g")
    assert listed.flex is not None
    assert not listed.is_estimated("queued")
    shown = output("machines", "--gpu", "t4", "--region", "us-central1", "--cloud", "gke")
    assert "flex-start from that on demand" in " ".join(shown.split())


def test_the_preview_marks_estimates() -> None:
    """The pool, the sum and the item are marked in text and JSON; the idle cost has no estimate."""
    text = output("preview", "--config-file", str(_FILE))
    assert "~0.39" in text
    assert f"Estimated price: {_ITEM}" in text
    preview = json.loads(output("preview", "--config-file", str(_FILE), "--format", "json"))
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
    text = output("review", "--config-file", str(_FILE), "--format", kind)
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


def _quantities(item: str) -> dict[str, float]:
    return {skus.on_demand[0]: quantity for skus, quantity in components(item).items()}


def test_a_machine_is_the_sum_of_its_components() -> None:
    """Accelerators and local SSDs count where they come with it, and shared cores in part."""
    assert _quantities("a2-ultragpu-2g") == {
        "A2 Instance Core": 24,
        "A2 Instance Ram": 340,
        "Nvidia Tesla A100 80GB GPU": 2,
        "SSD backed Local Storage": 750,
    }
    assert _quantities("e2-micro") == {"E2 Instance Core": 0.25, "E2 Instance Ram": 1}
    assert _quantities("n1-standard-8") == {
        "N1 Predefined Instance Core": 8,
        "N1 Predefined Instance Ram": 30,
    }
    assert _quantities("gpu:nvidia-tesla-t4") == {"Nvidia Tesla T4 GPU": 1}


def test_newer_machines_are_billed_by_their_accelerators() -> None:
    """A slice of A4 and the chip of a TPU have vCPUs, memory and disks in them."""
    assert _quantities("a4-highgpu-8g") == {"A4 Nvidia B200 (1 gpu slice)": 8}
    assert _quantities("ct6e-standard-4t") == {"TpuV6e": 4}
    assert _quantities("g4-standard-48") == {
        "G4 Instance Core": 48,
        "G4 Instance Ram": 180,
        "RTX 6000 96GB": 1,
    }
    assert _quantities("a3-ultragpu-8g") == {
        "A3Ultra Instance Core": 224,
        "A3Ultra Instance Ram": 2952,
        "H200 141GB GPU": 8,
        "SSD backed Local Storage": 12000,
    }


@pytest.mark.parametrize("item", ["nat", "gpu:nvidia-x", "Standard_D4s_v5", ""])
def test_an_item_with_an_unknown_component_has_none(item: str) -> None:
    """A sum without its accelerators would be too low."""
    assert components(item) == {}


def test_every_component_is_one_of_the_catalog() -> None:
    """Families and accelerators are spelled as the catalog's machines."""
    machines = [find_machine(CloudKind.GKE, name) for name in machine_names(CloudKind.GKE)]
    families = {machine.family for machine in machines if machine}
    accelerators = {machine.accelerator for machine in machines if machine}
    accelerators |= {row["accelerator"] for row in rows("attachable")}
    for row in rows("skus"):
        kind, _, name = row["component"].partition(":")
        assert not name or name in (accelerators if kind == "gpu" else families)
