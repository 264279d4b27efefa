"""Regions and zones of the fake clouds: those of the tables, and those that the stack's declaration adds."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.cloud.azure.nodes import machine
from ebbtide_rehearsal.cloud.existing import introduce, make
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.regions import locations
from rehearsal.tests.unit.azure_cloud import Azure
from rehearsal.tests.unit.gcp_cloud import Cloud, asked_for
from tests.contract.pool_flips import UNKNOWN
from tests.declarations import AKS, GKE, Declaration, changed, only

NEWER = {
    "name": "us-east7",
    "zones": ["us-east7-a", "us-east7-b"],
    "offers": ["e2-standard-4", "n2", "nvidia-tesla-t4", "a2-highgpu-1g"],
}


def _in(declaration: Declaration, location: str, *regions: dict[str, Any]) -> Declaration:
    cloud = declaration["cloud"] | {"location": location, "regions": list(regions)}
    return changed(declaration, cloud=cloud, lifetime={"hours": 8})


def test_what_a_declaration_adds_is_created(tmp_path: Path) -> None:
    """The whole cluster, with a pool in each of the zones, once the cloud has the region."""
    declaration = _in(GKE, "us-east7", NEWER)
    cloud = Cloud(tmp_path)
    make(declaration, cloud.store, cloud.clusters)
    _create(cloud, declaration)
    assert cloud.node_pools()["t4"].zones == ("us-east7-a", "us-east7-b")


def test_a_machine_that_the_catalog_lacks_is_created(tmp_path: Path) -> None:
    """A machine type with its resources exists once the cloud has the declaration, and its nodes have these
    resources."""
    declaration = changed(only(GKE, machine=UNKNOWN, capacity="spot"), lifetime={"hours": 8})
    with pytest.raises(RefusedError, match='Machine type with name "n9-standard-8" does not exist'):
        _create(Cloud(tmp_path), declaration)
    (tmp_path / "own").mkdir()
    cloud = Cloud(tmp_path / "own")
    make(declaration, cloud.store, cloud.clusters)
    _create(cloud, declaration)
    allocatable = declare(declaration).resolved_pools[1].allocatable
    assert allocatable is not None
    node = cloud.node_pools()["work"].allocatable
    assert (node["cpu"], node["memory"]) == (f"{allocatable.cpu_m:g}m", f"{int(allocatable.memory_mib)}Mi")


def _create(cloud: Cloud, declaration: Declaration) -> None:
    for resource, inputs in asked_for(declaration):
        cloud.create(resource.type, inputs, resource.name)


def test_a_size_that_the_catalog_lacks_has_its_declared_memory(tmp_path: Path) -> None:
    """A size of Azure that the catalog lacks has the declared memory, not the usual 4 GiB a core."""
    store = Azure(tmp_path).store
    assert (found := machine(store, "Standard_D8as_v9")) is not None
    assert found.memory_gib == 32
    shape = {"type": "Standard_D8as_v9", "vcpus": 8, "memoryGib": 64}
    introduce(only(AKS, machine=shape), store)
    assert (found := machine(store, "Standard_D8as_v9")) is not None
    assert found.memory_gib == 64


def test_a_running_cloud_hears_of_a_region(tmp_path: Path) -> None:
    """Another declaration of the same stack adds to what the cloud has."""
    store = Cloud(tmp_path).store
    introduce(_in(GKE, "us-central1", NEWER), store)
    introduce(_in(AKS, "eastus3", {"name": "eastus3", "zones": ["1"]}), store)
    assert locations(store, CloudKind.GKE).zones("us-east7") == ("us-east7-a", "us-east7-b")
    assert locations(store, CloudKind.AKS).zones("eastus3") == ("1",)
    assert "eastus3" not in locations(store, CloudKind.GKE).names()


def test_a_size_that_the_region_lacks(tmp_path: Path) -> None:
    """AKS names the size and the region."""
    azure = Azure(tmp_path)
    azure.make("resources:ResourceGroup", resourceGroupName="north", location="norwaywest")
    with pytest.raises(RefusedError, match="The VM size of Standard_ND96asr_v4 is not allowed in your sub"):
        azure.make(
            "containerservice:ManagedCluster",
            resourceGroupName="north",
            resourceName="north",
            location="norwaywest",
            dnsPrefix="north",
            identity={"type": "SystemAssigned"},
            agentPoolProfiles=[
                {"name": "system", "mode": "System", "vmSize": "Standard_ND96asr_v4", "count": 1}
            ],
        )
