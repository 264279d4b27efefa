"""Prices, read by the clouds' own client libraries from the fake clouds' REST APIs."""

from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.clients.clouds import google
from ebbtide.clients.clouds.connect import Refreshed, merged, refresh
from ebbtide.clients.clouds.interfaces import CloudApiError
from ebbtide.declaration.catalog.prices import Price, PriceKey, find_price, own_prices, price_file
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault
from rehearsal.tests.unit.price_lists import ITEMS, SKUS
from rehearsal.tests.unit.rest_clouds import RestClouds, rest_clouds

_GKE, _AKS = CloudKind.GKE, CloudKind.AKS


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[RestClouds]:
    """The fake clouds, with price lists."""
    with rest_clouds(tmp_path, monkeypatch, SKUS, ITEMS) as serving:
        yield serving


def _rates(price: Price) -> tuple[float | None, ...]:
    return tuple(rate and round(rate, 6) for rate in (price.on_demand, price.spot, price.flex))


def test_google_prices_are_sums_of_skus(clouds: RestClouds) -> None:
    """Shared cores count in part, local SSDs that come with the machine too, and free tiers do not."""
    items = ["e2-small", "e2-standard-4", "gpu:nvidia-tesla-t4", "pd-standard-gib", "a3-highgpu-1g"]
    prices = clouds.prices(_GKE).prices("us-central1", items)
    assert {item: _rates(price) for item, price in prices.items()} == {
        "e2-small": (0.016753, 0.010052, None),
        "e2-standard-4": (0.134023, 0.080414, None),
        "gpu:nvidia-tesla-t4": (0.35, 0.1814, None),
        "pd-standard-gib": (0.000055, None, None),
        "a3-highgpu-1g": (None, None, 4.790005),
    }
    assert {price.source for price in prices.values()} == {"Cloud Billing Catalog API"}
    assert {price.as_of for price in prices.values()} == {datetime.now(UTC).date().isoformat()}


def test_newer_machines_are_priced_under_the_names_of_the_catalog(clouds: RestClouds) -> None:
    """A3 Mega has another one in the Americas, and a spot SKU of A4 counts as on-demand."""
    prices = clouds.prices(_GKE).prices("us-central1", ["a3-megagpu-8g", "a4-highgpu-8g"])
    known = (
        find_price(_GKE, "us-central1", "a3-megagpu-8g"),
        find_price(_GKE, "us-central1", "a4-highgpu-8g"),
    )
    assert known[0]
    assert prices["a3-megagpu-8g"].on_demand == pytest.approx(known[0].on_demand, abs=0.01)
    assert known[1]
    assert _rates(prices["a4-highgpu-8g"]) == (128.88, known[1].spot, None)
    tpu = clouds.prices(_GKE).prices("us-east5", ["ct6e-standard-4t"])["ct6e-standard-4t"]
    assert _rates(tpu) == (10.8, None, 5.4)


@pytest.mark.parametrize("item", ["pd-balanced-gib", "pd-ssd-gib", "n2-standard-8", "g4-standard-48", "nat"])
def test_what_the_list_does_not_settle_is_unknown(clouds: RestClouds, item: str) -> None:
    """Two rates, an unknown unit, a SKU that is not listed, and an item without SKUs are not a price."""
    assert clouds.prices(_GKE).prices("us-central1", [item]) == {}


def test_prices_are_of_the_region(clouds: RestClouds) -> None:
    """A region in words at the end of a description is that of `serviceRegions`."""
    assert _rates(clouds.prices(_GKE).prices("europe-west4", ["e2-standard-2"])["e2-standard-2"]) == (
        0.0736,
        None,
        None,
    )


def test_google_pages_are_followed(clouds: RestClouds, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog has more SKUs than a page."""
    monkeypatch.setattr(google, "PAGE_SIZE", 3)
    prices = clouds.prices(_GKE).prices("us-central1", ["pd-standard-gib", "e2-standard-4"])
    assert prices.keys() == {"pd-standard-gib", "e2-standard-4"}


def test_azure_prices_are_of_linux_machines(clouds: RestClouds) -> None:
    """The newest row of a size counts, Windows, low priority and other offers do not."""
    sizes = ["Standard_NC4as_T4_v3", "Standard_D8as_v5", "disk-premium-p4-32gib", "Standard_D4as_v5", "nat"]
    prices = clouds.prices(_AKS).prices("eastus", sizes)
    assert {item: _rates(price) for item, price in prices.items()} == {
        "Standard_NC4as_T4_v3": (0.526, 0.2209, None),
        "Standard_D8as_v5": (0.344, None, None),
        "disk-premium-p4-32gib": (0.007232, None, None),
    }
    assert clouds.prices(_AKS).prices("westus", sizes) == {}


def test_azure_needs_no_credentials(clouds: RestClouds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack on AKS opens no other list."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    assert refresh({("aks", "eastus", "Standard_D8as_v5")}, clouds.prices)[0].new


@pytest.mark.parametrize(
    ("cloud", "operation"), [(_GKE, "cloudbilling.services.skus.list"), (_AKS, "retail/prices")]
)
def test_a_refusal_ends_the_refresh(clouds: RestClouds, cloud: CloudKind, operation: str) -> None:
    """No price is kept as if it were current."""
    clouds.store.inject(InjectedFault(API_ERROR, operation, 1, {"status": 403, "message": "Disabled."}))
    with pytest.raises(CloudApiError, match=r"localhost returned status 403\. Disabled\."):
        clouds.prices(cloud).prices("eastus", ["Standard_D8as_v5", "e2-small"])


def _refreshed(clouds: RestClouds, *items: str) -> Mapping[PriceKey, Refreshed]:
    changes = refresh(
        {("gke", "us-central1", item) for item in items} | {("gke", "global", "nat")}, clouds.prices
    )
    return {change.key: change for change in changes}


def test_own_prices_stay_and_the_rest_is_refreshed(clouds: RestClouds, tmp_path: Path) -> None:
    """A refreshed file is refreshed again; prices of a contract stay, and prices that the list lacks."""
    e2, t4 = ("gke", "us-central1", "e2-small"), ("gke", "us-central1", "gpu:nvidia-tesla-t4")
    contract = Price(0.2, None, None, "", "2026-01", "contract 17")
    file = tmp_path / "prices.csv"
    file.write_text(price_file({t4: contract}), encoding="utf-8")

    def refreshed() -> Mapping[PriceKey, Refreshed]:
        with own_prices(file):
            changes = _refreshed(clouds, "e2-small", "gpu:nvidia-tesla-t4", "n2-standard-8")
            prices = merged(changes.values())
        file.write_text(price_file(prices), encoding="utf-8")
        assert prices.keys() == {e2, t4}
        assert prices[t4] == contract
        assert _rates(prices[e2]) == (0.016753, 0.010052, None)
        return changes

    refreshed()
    again = refreshed()
    assert (again[t4].is_own, again[t4].new) == (True, None)
    assert again["gke", "us-central1", "n2-standard-8"].old
    assert again["gke", "global", "nat"].new is None
    old = again[e2].old
    assert old
    assert (old.source, old.as_of) == ("Cloud Billing Catalog API", datetime.now(UTC).date().isoformat())
