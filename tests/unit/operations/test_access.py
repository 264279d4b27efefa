"""Projects, subscriptions and clusters of a state, and those that are configured now."""

from types import SimpleNamespace

import pytest

from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account, CloudApiError, ClusterIdentity
from ebbtide.operations import access
from ebbtide.operations.access import commands
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import read
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.operations.world import resource

_GROUP = "/subscriptions/s-1/resourceGroups/ml"
_AKS = f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/ml"
_GKE_TYPE = "gcp:container/cluster:Cluster"
_AKS_TYPE = "azure-native:containerservice:ManagedCluster"
_OF_GKE, _OF_AKS = Account(CloudKind.GKE, "acme-ml"), Account(CloudKind.AKS, "s-1")


def test_clusters_of_a_state() -> None:
    """Created ones, and one whose creation was interrupted; an existing one gives its account alone."""
    gke = {"project": "acme-ml", "location": "us-central1-a", "name": "ml"}
    aks = {"location": "eastus", "nodeResourceGroup": "MC_ml"}
    pool = resource("gcp:container/nodePool:NodePool", "train", outputs={"project": "theirs"})
    shared = resource(
        _GKE_TYPE, "train", external=True, outputs={**gke, "project": "theirs", "name": "shared"}
    )
    state = read(
        {
            "resources": [resource(_AKS_TYPE, "train", id=_AKS, outputs=aks), pool, shared],
            "pending_operations": [
                {"type": "creating", "resource": resource(_GKE_TYPE, "train", inputs=gke)},
                {"type": "deleting", "resource": resource(_GKE_TYPE, "train", inputs={**gke, "name": "old"})},
            ],
        }
    )
    assert state.identities == (
        ClusterIdentity(
            account=_OF_AKS,
            location="eastus",
            name="ml",
            resource_group="ml",
            node_resource_group="MC_ml",
        ),
        ClusterIdentity(account=_OF_GKE, location="us-central1-a", name="ml"),
    )
    assert [identity.id for identity in state.identities] == [
        _AKS,
        "projects/acme-ml/locations/us-central1-a/clusters/ml",
    ]
    assert set(state.accounts) == {_OF_AKS, _OF_GKE, Account(CloudKind.GKE, "theirs")}
    assert state.pending == ("train",)
    listing = [commands(identity) for identity in state.identities]
    assert listing[0] == "az resource list --subscription s-1 --resource-group MC_ml --output table"
    assert "labels.goog-k8s-cluster-name=ml AND labels.goog-k8s-cluster-location=us-central1-a" in listing[1]


def test_every_other_account_is_named_at_once() -> None:
    """All wrong accounts of the stack's clouds are reported together."""
    declared = {"cloud": {"kind": "aks", "subscription": "s-2"}}
    with pytest.raises(OperationError) as refusal:
        access.check_accounts(
            "dev",
            [_OF_AKS, _OF_GKE],
            {"gcp:project": "other", "azure-native:subscriptionId": "s-1"},
            declared,
            {"CLOUDSDK_CORE_PROJECT": "another", "GOOGLE_PROJECT": "acme-ml", "ARM_SUBSCRIPTION_ID": "s-1"},
        )
    lines = str(refusal.value).splitlines()
    assert [line.partition(" names ")[2] for line in lines] == [
        "subscription s-2. Name s-1 there, or nothing.",
        "project other. Name acme-ml there, or nothing.",
        "project another. Name acme-ml there, or nothing.",
    ]
    access.check_accounts("dev", [_OF_GKE], {}, declared, {"ARM_SUBSCRIPTION_ID": "s-2"})


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_an_account_without_access_is_refused(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """Credentials without access, also to a project that they do not see, end a command before any change; a
    cloud that does not answer is a reason."""

    def check() -> None:
        raise CloudApiError("It says no.", status)

    def inventory(_account: Account) -> SimpleNamespace:
        return SimpleNamespace(check=check)

    monkeypatch.setattr(connect, "inventory", inventory)
    if status == 500:
        assert access.reach([_OF_GKE]) == access.Clouds(reasons={_OF_GKE: "It says no."})
        return
    with pytest.raises(OperationError, match=r"^Nothing was changed: the credentials have no access to"):
        access.reach([_OF_GKE])
