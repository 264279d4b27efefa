"""Container registries in the fake clouds: what is refused, what is answered, what goes with a registry."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.gcp.request import REPOSITORY, REPOSITORY_MEMBER
from ebbtide_rehearsal.cloud.provider import RefusedError
from rehearsal.tests.unit.azure_cloud import Azure
from rehearsal.tests.unit.gcp_cloud import Cloud

_REPOSITORY: dict[str, Any] = {
    "repositoryId": "train-vision",
    "project": "acme-ml",
    "location": "us-central1",
    "format": "DOCKER",
}
_ID = "projects/acme-ml/locations/us-central1/repositories/train-vision"
_GRANT: dict[str, Any] = {
    "repository": "train-vision",
    "project": "acme-ml",
    "location": "us-central1",
    "role": "roles/artifactregistry.writer",
    "member": "user:ada@acme.example",
}
_REGISTRY: dict[str, Any] = {
    "resourceGroupName": "train",
    "registryName": "visionimages",
    "location": "eastus",
    "sku": {"name": "Basic"},
}


def test_a_repository_that_exists(tmp_path: Path) -> None:
    """A second one of the name is refused; a kept one that is created again is such a case."""
    cloud = Cloud(tmp_path)
    made = cloud.create(REPOSITORY, _REPOSITORY)
    assert made.state["registryUri"] == "us-central1-docker.pkg.dev/acme-ml/train-vision"
    with pytest.raises(RefusedError, match="the repository already exists"):
        cloud.create(REPOSITORY, _REPOSITORY)


def test_grants_on_a_repository(tmp_path: Path) -> None:
    """Grants need the repository, and are deleted with it."""
    cloud = Cloud(tmp_path)
    with pytest.raises(RefusedError, match=r"Requested entity was not found\."):
        cloud.create(REPOSITORY_MEMBER, _GRANT)
    cloud.create(REPOSITORY, _REPOSITORY)
    cloud.create(REPOSITORY_MEMBER, _GRANT)
    cloud.delete(_ID)
    assert cloud.store.resources() == []


def test_a_repository_that_is_changed(tmp_path: Path) -> None:
    """The name and location of a repository are immutable; the mutability of its tags is not."""
    cloud = Cloud(tmp_path)
    cloud.create(REPOSITORY, _REPOSITORY)
    assert cloud.diff(_ID, _REPOSITORY | {"location": "us-east1"}).replaces
    change = cloud.diff(_ID, _REPOSITORY | {"dockerConfig": {"immutableTags": True}})
    assert not change.replaces
    assert change.changed


def test_a_registrys_name_is_azures(tmp_path: Path) -> None:
    """A registry's name is unique across all groups, regardless of case."""
    azure = Azure(tmp_path).with_network()
    made = azure.make("containerregistry:Registry", **_REGISTRY)
    assert made.state["loginServer"] == "visionimages.azurecr.io"
    azure.make("resources:ResourceGroup", resourceGroupName="other")
    with pytest.raises(RefusedError, match="AlreadyInUse"):
        azure.make(
            "containerregistry:Registry",
            **_REGISTRY | {"resourceGroupName": "other", "registryName": "VisionImages"},
        )
