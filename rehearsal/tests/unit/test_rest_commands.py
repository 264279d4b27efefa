"""`ebbtide quota` and `ebbtide prices refresh` over the fake clouds' REST APIs."""

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ebbtide.cli.entry_point import app
from ebbtide.clients.clouds import connect
from ebbtide.declaration.catalog.prices import find_price, own_prices
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.pools import put, register
from ebbtide_rehearsal.cloud.store import API_ERROR, QUOTA, InjectedFault
from rehearsal.tests.unit.node_pool import a_machine, a_pool
from rehearsal.tests.unit.price_lists import ITEMS, SKUS
from rehearsal.tests.unit.rest_clouds import PROJECT, SUBSCRIPTION, RestClouds, rest_clouds
from tests.pages import output
from tests.repository import ROOT


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[RestClouds]:
    """The fake clouds in place of the real ones."""
    monkeypatch.setenv("COLUMNS", "80")
    with rest_clouds(tmp_path, monkeypatch, SKUS, ITEMS) as serving:
        monkeypatch.setattr(connect, "price_source", serving.prices)
        yield serving


def _run(*arguments: str) -> Result:
    directory = () if "--region" in arguments else ("--cwd", str(ROOT))
    return CliRunner().invoke(app, [*arguments, *directory])


def test_a_new_project_is_told_what_to_request(clouds: RestClouds) -> None:
    """The table of docs/review.md: GPUS_ALL_REGIONS is 0 there, and spot vCPUs count against CPUS."""
    for name, limit in {
        "A2_CPUS": 128,
        "CPUS": 24,
        "GPUS_ALL_REGIONS": 0,
        "N2_CPUS": 128,
        "PREEMPTIBLE_CPUS": 0,
        "PREEMPTIBLE_NVIDIA_A100_GPUS": 16,
        "PREEMPTIBLE_NVIDIA_T4_GPUS": 8,
        "SSD_TOTAL_GB": 500,
    }.items():
        clouds.store.inject(InjectedFault(QUOTA, name, details={"limit": limit}))
    pool = a_pool(machine="n2-standard-8")
    register(clouds.store, pool)
    put(clouds.store, a_machine(pool))
    done = _run("quota", "dev")
    assert done.exit_code == 1
    assert [done.stdout] == output("docs/review.md", f"gke: project {PROJECT}")


def test_the_quota_of_a_story(clouds: RestClouds) -> None:
    """The command on the page of the preemptible pools compares both pools' quotas with the limits."""
    page = (ROOT / "examples" / "preemptible-pipelines" / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`\.venv/bin/ebbtide (quota [^`]+)`", page)
    clouds.store.inject(InjectedFault(QUOTA, "PREEMPTIBLE_NVIDIA_T4_GPUS", details={"limit": 1}))
    done = _run(*command.split())
    assert done.exit_code == 1, done.stderr
    lines = {tuple(line.split()) for line in done.stdout.splitlines()}
    assert ("us-central1", "PREEMPTIBLE_NVIDIA_T4_GPUS", "8", "1", "0", "8") in lines
    assert ("us-central1", "PREEMPTIBLE_CPUS", "32", "100000", "0") in lines


def test_enough_is_reported_with_success(clouds: RestClouds) -> None:
    """On both clouds; the JSON document has every quota with its pools."""
    assert _run("quota", "dev").exit_code == 0
    done = _run("quota", "dev-aks", "--format", "json")
    assert done.exit_code == 0
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["cores"] | {"limit": 0} == {
        "cloud": "aks",
        "account": SUBSCRIPTION,
        "region": "eastus",
        "name": "cores",
        "needed": 44,
        "limit": 0,
        "usage": 0,
        "verdict": "enough",
        "reason": "",
        "request": None,
        "pools": ["system", "cpu"],
    }
    clouds.store.inject(InjectedFault(QUOTA, "lowPriorityCores", details={"limit": 80}))
    done = _run("quota", "dev-aks")
    assert done.exit_code == 1
    assert "eastus lowPriorityCores 96 80 0 96" in " ".join(done.stdout.split())


def test_a_refusal_is_an_error(clouds: RestClouds) -> None:
    """With the cloud's message and exit status 2."""
    fault = InjectedFault(
        API_ERROR, "compute.*", 1, {"status": 403, "message": "Required 'compute.regions.get' permission."}
    )
    clouds.store.inject(fault)
    done = _run("quota", "dev")
    assert done.exit_code == 2
    assert "status 403. Required 'compute.regions.get' permission. Ask an owner of acme-ml for" in done.stderr


@pytest.mark.usefixtures("clouds")
def test_a_stacks_prices_are_refreshed(tmp_path: Path) -> None:
    """The file is one for `ebbtide:prices`, and the table has old and new prices with date and source."""
    file = tmp_path / "prices.csv"
    done = _run("prices", "refresh", "dev-aks", "--out", str(file))
    assert (done.exit_code, done.stdout) == (0, "")
    (table,) = output("docs/review.md", "aks eastus:")
    assert re.sub(r"20\d\d-\d\d-\d\d", str(clock.now().date()), table) in done.stderr
    shown = " ".join(done.stderr.split())
    assert "aks eastus: unchanged, not in the list ITEM $/H SOURCE Standard_D4as_v5 0.172 " in shown
    assert "disk-premium-p6-64gib 0.01399 Azure Retail" in shown
    assert f"To use it, write `ebbtide:prices: {file}` under `config:` in " in shown
    assert "aks global: unchanged, not in the list ITEM $/H SOURCE control-plane:aks-free 0 " in shown
    with own_prices(file):
        price = find_price(CloudKind.AKS, "eastus", "Standard_NC4as_T4_v3")
    assert price
    assert (price.on_demand, price.spot, price.source) == (0.526, 0.2209, "Azure Retail Prices API")


@pytest.mark.usefixtures("clouds")
def test_a_region_outside_of_the_table_is_priced_by_the_list_alone(tmp_path: Path) -> None:
    """A price that neither has is unknown, and named once; a region without any price writes no file."""
    file = tmp_path / "prices.csv"
    done = _run("prices", "refresh", "--region", "us-east5", "--out", str(file))
    assert done.exit_code == 0
    shown = " ".join(done.stderr.split())
    assert " ct6e-standard-4t ? -> 10.8 ? ? -> 5.4 " in shown
    assert "gke us-east5: unknown, in neither the list nor the table: a2-highgpu-1g, " in shown
    assert "To use it, write `ebbtide:prices: prices.csv`" in shown
    with own_prices(file):
        assert find_price(CloudKind.GKE, "us-east5", "ct6e-standard-4t")
    file.unlink()
    done = _run("prices", "refresh", "--region", "asia-east1", "--out", str(file))
    assert (done.exit_code, file.exists()) == (2, False)
    assert "The price list has no prices in asia-east1, so no file was written." in " ".join(
        done.stderr.split()
    )


@pytest.mark.usefixtures("clouds")
def test_a_regions_prices_go_to_standard_output() -> None:
    """Prices of a region's listed items are written to standard output, and the table to standard error."""
    done = _run("prices", "refresh", "--cloud", "gke", "--region", "us-central1")
    assert done.exit_code == 0
    items = [line.split(",")[2] for line in done.stdout.splitlines()]
    assert items[0] == "item"
    assert {"e2-small", "e2-standard-16", "gpu:nvidia-tesla-t4", "a3-highgpu-8g"} <= set(items)
    assert "n2-standard-8" not in items
    assert " n2-standard-8 0.3885 " in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--region", "us-centrl1"), "No region us-centrl1 is known; did you mean us-central1?"),
        (("--cloud", "aks", "--region", "us-central1"), "us-central1 is a region of GKE: omit --cloud."),
        (("dev", "--region", "eastus"), "A stack and --cloud or --region exclude each other."),
    ],
)
def test_a_wrong_selection_is_refused(arguments: tuple[str, ...], message: str) -> None:
    """With exit status 2, before any request."""
    done = _run("prices", "refresh", *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
