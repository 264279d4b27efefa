"""Container registries of teams on both clouds: nodes pull, and destroy does what is declared."""

from typing import Any

import pytest

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile, ProfileError
from ebbtide.placement.derive import image_prefix, profile
from tests.declarations import BASES, Declaration, changed
from tests.running import manifest
from tests.synth import synth

GROUP = "11111111-2222-3333-4444-555555555555"
MEMBERS = {"gke": ["ada@acme.example", "group:vision@acme.example"], "aks": [GROUP, "ada@acme.example"]}
REGISTRY = {
    "gke": "gcp:artifactregistry/repository:Repository",
    "aks": "azure-native:containerregistry:Registry",
}
READER_AND_WRITER = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"


def declared(cloud: str, registry: dict[str, Any] | None = None, **changes: Any) -> Declaration:
    """One team with a registry, and one without."""
    vision = {"name": "vision", "members": MEMBERS[cloud], "registry": registry or {}}
    return changed(BASES[cloud], teams=[vision, {"name": "speech"}], **changes)


def registry_of(recording: Recording, cloud: str) -> Resource:
    """The one registry."""
    (registry,) = recording.of_type(REGISTRY[cloud])
    return registry


def test_nodes_pull_on_gke() -> None:
    """A cluster of ours reads all repositories of the project; a pool's own account is granted this one."""
    declaration = declared("gke")
    declaration["pools"][1]["serviceAccount"] = "gpu-nodes@acme-ml.iam.gserviceaccount.com"
    recording = synth(declaration)
    project = [manifest(item) for item in recording.of_type("gcp:projects/iAMMember:IAMMember")]
    assert "roles/artifactregistry.reader" in {item["role"] for item in project}
    readers = [
        manifest(item)["member"]
        for item in recording.of_type(READER_AND_WRITER)
        if manifest(item)["role"] == "roles/artifactregistry.reader"
    ]
    assert readers == ["serviceAccount:gpu-nodes@acme-ml.iam.gserviceaccount.com"]


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize(
    ("keep", "lifetime", "stays"),
    [(None, None, True), (None, {"hours": 8}, False), (True, {"hours": 8}, True), (False, None, False)],
)
def test_what_stays(cloud: str, keep: Any, lifetime: Any, stays: Any) -> None:
    """A registry is retained by `keep` or with a permanent cluster, on AKS with its resource group."""
    registry = {} if keep is None else {"keep": keep}
    recording = synth(declared(cloud, registry, **({"lifetime": lifetime} if lifetime else {})))
    resource = registry_of(recording, cloud)
    assert resource.retain_on_delete is stays
    assert resource.deleted_with is None
    if cloud == "aks":
        group = manifest(resource)["resourceGroupName"]
        kept = [
            item
            for item in recording.of_type("azure-native:resources:ResourceGroup")
            if item.retain_on_delete
        ]
        assert group == ("train-vision-images-kept" if stays else "train")
        assert [manifest(item)["resourceGroupName"] for item in kept] == ([group] if stays else [])


def test_a_given_resource_group_has_what_is_kept() -> None:
    """No resource group is created beside one that exists: what is kept is in it."""
    declaration = declared("aks")
    declaration["cloud"] = {**declaration["cloud"], "createResourceGroup": False}
    declaration["teams"][0]["bucket"] = {}
    recording = synth(declaration)
    assert not recording.of_type("azure-native:resources:ResourceGroup")
    for type_ in ("storage:StorageAccount", "containerregistry:Registry"):
        (resource,) = recording.of_type(f"azure-native:{type_}")
        assert resource.retain_on_delete
        assert manifest(resource)["resourceGroupName"] == "train"


@pytest.mark.parametrize("cloud", BASES)
def test_the_profile_has_the_image_prefix(cloud: str) -> None:
    """The name of an image follows from the declaration, and is the name of the registry that is
    created."""
    declaration = declared(cloud)
    made = Profile.load(profile(declare(declaration)).data())
    registry = manifest(registry_of(synth(declaration), cloud))
    prefix = {
        "gke": "us-central1-docker.pkg.dev/acme-ml/train-vision",
        "aks": f"{registry.get('registryName')}.azurecr.io",
    }[cloud]
    assert made.image("vision", "trainer:1") == f"{prefix}/trainer:1"
    with pytest.raises(ProfileError, match="Cluster train has no registry of team speech"):
        made.image("speech", "trainer:1")
    older = {key: value for key, value in made.data().items() if key != "teams"}
    older["version"] = "ebbtide.dev/profile/v1"
    assert Profile.load(older).teams == ()
    (team,) = Profile.load({**older, "registries": [{"team": "vision", "prefix": prefix}]}).teams
    assert (team.name, team.registry) == ("vision", prefix)


def test_a_project_of_a_domain() -> None:
    """The colon of a domain-scoped project is a slash in the name of an image."""
    declaration = declared("gke")
    declaration["cloud"]["project"] = "acme.example:ml-dev"
    cluster = declare(declaration)
    assert (
        image_prefix(cluster, cluster.teams[0])
        == "us-central1-docker.pkg.dev/acme.example/ml-dev/train-vision"
    )
