"""The tables of locations, of the hardware in them and of retirements."""

import re
from typing import Any

import pytest

from ebbtide.declaration.catalog.clouds import is_gke_zone, region_of
from ebbtide.declaration.catalog.locations import Locations, is_ai_zone
from ebbtide.declaration.catalog.machines import find_machine, machine_names, retirement
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.model.site import Region
from ebbtide.values.cloud_kind import CloudKind

GKE, AKS = Locations(CloudKind.GKE), Locations(CloudKind.AKS)


@pytest.mark.parametrize("table", ["locations", "offerings", "retirements"])
def test_every_row_has_its_date_and_source(table: str) -> None:
    """A year and a month, and a source."""
    for row in rows(table):
        assert re.fullmatch(r"20\d\d-\d\d", row["as_of"])
        assert row["source"]


def test_zones_are_spelt_as_google_cloud_does() -> None:
    """Every zone is a zone of its region, AI zones among them, and every region has one that is none."""
    for region in GKE.regions():
        assert all(is_gke_zone(zone) and region_of(zone) == region for zone in GKE.zones(region))
        assert 1 <= len(GKE.default_zones(region)) <= 3
        assert not any(is_ai_zone(zone) for zone in GKE.default_zones(region))
    assert GKE.zones("us-south1")[-1] == "us-south1-ai1b"
    assert GKE.default_zones("us-east1") == ("us-east1-b", "us-east1-c", "us-east1-d")


def test_azure_has_regions_with_and_without_zones() -> None:
    """Zones are numbers."""
    assert AKS.zones("eastus") == ("1", "2", "3")
    assert AKS.zones("westus") == ()
    assert "westus" in AKS.names()
    assert "1" not in AKS.names()


def test_hardware_is_offered_in_known_locations() -> None:
    """No row names a region or zone that the other table lacks."""
    for row in rows("offerings"):
        known = GKE.names() if row["cloud"] == "gke" else AKS.names()
        assert {*row["locations"].split()} <= {*known}


def test_what_has_a_price_is_offered() -> None:
    """A machine type with a price in a region is listed there."""
    for row in rows("prices"):
        cloud = CloudKind(row["cloud"])
        machine = find_machine(cloud, row["item"])
        if machine is None or not row["usd_per_hour_on_demand"]:
            continue
        known = Locations(cloud)
        offering = known.offering(machine.family, machine.accelerator)
        assert offering is None or known.offers(offering, row["region"])


@pytest.mark.parametrize(
    ("family", "accelerator", "location", "listed"),
    [
        ("n1", "nvidia-tesla-t4", "europe-north1-a", False),
        ("n1", "nvidia-tesla-t4", "us-west4-b", True),
        ("n1", "nvidia-tesla-t4", "us-west4-c", False),
        ("n1", "nvidia-tesla-t4", "us-west4", True),
        ("g2", "nvidia-l4", "us-west4-c", True),
        ("e2", "", "us-central2-b", False),
        ("n2", "", "us-central2-b", True),
        ("ct6e", "tpu-v6e-slice", "us-south1-ai1b", True),
    ],
)
def test_where_hardware_is_offered(family: str, accelerator: str, location: str, listed: Any) -> None:
    """By zone where zones are known, else by region; the accelerator decides before the family."""
    offering = GKE.offering(family, accelerator)
    assert offering is not None
    assert GKE.offers(offering, location) is listed


def test_a_declaration_adds_to_the_tables() -> None:
    """A region that no table has, a zone of one that they have, and hardware by any of its names."""
    added = Locations(
        CloudKind.GKE,
        [
            Region(name="us-east7", zones=("us-east7-a",), offers=("nvidia-tesla-t4",)),
            Region(name="us-west4", zones=("us-west4-ai2b",), offers=("a2-highgpu-1g",)),
        ],
    )
    t4, a100 = added.offering("n1", "nvidia-tesla-t4"), added.offering("a2", "nvidia-tesla-a100")
    assert t4 is not None
    assert a100 is not None
    assert {"us-east7", "us-east7-a", "us-west4-ai2b"} <= {*added.names()}
    assert added.default_zones("us-west4") == GKE.default_zones("us-west4")
    assert added.offers(t4, "us-east7-a")
    assert not added.offers(t4, "us-west4-c")
    assert added.offers(a100, "us-west4-c", "a2-highgpu-1g")


def test_successors_are_in_the_catalog() -> None:
    """Every successor is in the catalog, and no entry of the catalog has been retired."""
    for row in rows("retirements"):
        cloud = CloudKind(row["cloud"])
        known = {*machine_names(cloud), "nvidia-tesla-t4"}
        assert row["successor"] in known
        assert retirement(cloud, row["successor"]) is None
    for cloud in CloudKind:
        past = [name for name in machine_names(cloud) if (gone := retirement(cloud, name)) and gone.is_past]
        assert past == []
