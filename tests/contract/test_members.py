"""Members of teams get access to the cluster, once each, with the smallest role."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.flips import EXISTING
from tests.declarations import BASES, changed
from tests.running import manifest
from tests.synth import synth

GROUP = "11111111-2222-3333-4444-555555555555"
ON_GKE = ("ada@acme.example", "group:vision@acme.example", "builds@acme-ml.iam.gserviceaccount.com")
IAM = "gcp:projects/iAMMember:IAMMember"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
CLUSTER_USER = "4abbcc35-e782-43d8-92c5-2d3f1bd2253f"


def _teams(*members: str) -> list[dict[str, Any]]:
    """Two teams that share all of their members."""
    return [{"name": name, "members": list(members)} for name in ("vision", "speech")]


def _grants(cloud: str, **changes: Any) -> list[dict[str, Any]]:
    recording = synth(changed(BASES[cloud], **changes))
    kind = {"gke": IAM, "aks": ASSIGNMENT}[cloud]
    return [manifest(item) for item in recording.of_type(kind) if "-members-" in item.name]


def test_members_reach_a_cluster_on_gke() -> None:
    """Each by its kind, in the least role, for this cluster alone, once for all teams."""
    grants = _grants("gke", teams=_teams(*ON_GKE))
    assert [grant["member"] for grant in grants] == [
        "user:ada@acme.example",
        "group:vision@acme.example",
        "serviceAccount:builds@acme-ml.iam.gserviceaccount.com",
    ]
    for grant in grants:
        assert (grant["project"], grant["role"]) == ("acme-ml", "roles/container.clusterViewer")
        assert grant["condition"]["expression"] == 'resource.name.endsWith("/us-central1-a/clusters/train")'


@pytest.mark.parametrize(
    "name",
    [
        "projects/acme-ml/zones/us-central1-a/clusters/train",
        "projects/123456789012/locations/us-central1-a/clusters/train",
    ],
)
def test_the_condition_holds_for_every_name_of_the_cluster(name: str) -> None:
    """With zones or locations, and with the project's number, but not for a cluster whose name ends alike."""
    (grant,) = _grants("gke", teams=[{"name": "vision", "members": ["ada@acme.example"]}])
    end = grant["condition"]["expression"].removeprefix('resource.name.endsWith("').removesuffix('")')
    assert name.endswith(end)
    assert not name.replace("/train", "/other-train").endswith(end)


def test_members_reach_a_cluster_on_aks() -> None:
    """Members of any principal type get the role for the kubeconfig on the cluster; a user name is not a
    principal."""
    (grant,) = _grants("aks", teams=_teams(GROUP, "ada@acme.example"))
    assert grant["principalId"] == GROUP
    assert grant["roleDefinitionId"].endswith(f"/{CLUSTER_USER}")
    assert "/managedClusters/" in grant["scope"]
    assert grant.get("principalType") is None


@pytest.mark.parametrize(("cloud", "member"), [("gke", "ada@acme.example"), ("aks", GROUP)])
def test_an_existing_cluster_gets_no_grants(cloud: str, member: str) -> None:
    """Access to an existing cluster is granted by its owner; the warning names the role."""
    recording = synth(changed(EXISTING[cloud], teams=_teams(member)))
    assert not [item for item in recording if "-members-" in item.name and item.type in (IAM, ASSIGNMENT)]
    (warning,) = [message.text for message in recording.messages if "is granted by its owner" in message.text]
    assert "clusterViewer" in warning or "Cluster User Role" in warning


MEMBERS = {"gke": "ada@acme.example", "aks": GROUP}


def _of_member(cloud: str) -> list[dict[str, Any]]:
    """Grants to a member of two teams, one of which has everything."""
    files = {"gke": "filestore", "aks": "azure-files"}[cloud]
    vision, speech = _teams(MEMBERS[cloud])
    vision |= {"bucket": {}, "volume": {"kind": files}, "registry": {}}
    addons: dict[str, Any] = {"logs": {}} if cloud == "aks" else {}
    recording = synth(changed(BASES[cloud], teams=[vision, speech], addons=addons))
    grants = [manifest(item) for item in recording]
    return [
        grant
        for grant in grants
        if MEMBERS[cloud] in str(grant.get("member") or grant.get("principalId") or "")
    ]


@pytest.mark.parametrize("cloud", BASES)
def test_members_have_the_documented_roles(cloud: str) -> None:
    """A member has the roles of the table in docs/security.md, each once, and no others."""
    table = yaml.safe_load(Path(__file__).with_name("member_roles.yaml").read_text(encoding="utf-8"))
    documented = [row.get("id", row["role"]) for row in table if row["cloud"] == cloud]
    names = [grant.get("role") or grant["roleDefinitionId"].rpartition("/")[2] for grant in _of_member(cloud)]
    assert sorted(names) == sorted(documented)


def test_members_have_roles_on_what_is_their_teams() -> None:
    """A role on a bucket, share or registry is on the team's own, and one on logs is for its namespaces."""
    on_gke = [grant for grant in _of_member("gke") if "condition" not in grant]
    assert all("vision" in (grant.get("bucket") or grant["repository"]) for grant in on_gke)
    own = ("/storageAccounts/vision", "/registries/vision")
    for grant in _of_member("aks"):
        scope = grant["scope"]
        if "/workspaces/" in scope:
            assert "{'vision', 'speech'}" in grant["condition"]
        else:
            assert any(name in scope for name in own) or scope.endswith("/managedClusters/train")
