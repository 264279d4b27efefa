"""A destroy that continues an earlier one: every cluster's leftovers are looked for."""

import copy
import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from rich.console import Console

from ebbtide.analysis.recording.recording import STACK_TYPE
from ebbtide.clients.clouds.interfaces import Account, CloudResource, ClusterIdentity, Inventory
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.operations import access, inspection
from ebbtide.operations.access import Clouds
from ebbtide.operations.destroy import Options, destroy
from ebbtide.operations.engine import state as deleted_clusters
from ebbtide.operations.engine.events import Step
from ebbtide.operations.engine.stack import Stack
from ebbtide.operations.engine.state import DeletedClusters, State, read
from ebbtide.operations.inspection import Inspection
from ebbtide.operations.leftovers.users import CloudNames

_ACCOUNT = Account(CloudKind.GKE, "acme-ml")
_EARLIER = ClusterIdentity(
    account=_ACCOUNT,
    location="us-central1-a",
    name="train",
    uid="e" * 64,
    namespace_uid="earlier",
    handles=frozenset({"old-disk"}),
)
_TYPE = "gcp:container/cluster:Cluster"
_CLUSTER: dict[str, Any] = {
    "urn": f"urn:pulumi:dev::shop::{_TYPE}::next",
    "type": _TYPE,
    "custom": True,
    "id": "projects/acme-ml/locations/us-central1-a/clusters/next",
    "outputs": {"name": "next", "project": "acme-ml", "location": "us-central1-a"},
}
_ROOT: dict[str, Any] = {
    "urn": f"urn:pulumi:dev::shop::{STACK_TYPE}::shop-dev",
    "type": STACK_TYPE,
    "outputs": {},
}


class _Stack:
    """A stack with a new cluster, after a destroy that deleted another one and failed."""

    name = "dev"

    def __init__(self, *, fails: bool) -> None:
        record = DeletedClusters((_EARLIER,), frozenset({"kept-disk"}))
        self.deployment: dict[str, Any] = deleted_clusters.with_clusters(
            {"resources": [_ROOT, _CLUSTER]}, record
        )
        self._fails = fails

    def exported(self) -> dict[str, Any]:
        """Return the state."""
        return {"version": 3, "deployment": copy.deepcopy(self.deployment)}

    def replace_state(self, document: Mapping[str, Any]) -> None:
        """Write the state."""
        self.deployment = copy.deepcopy(document["deployment"])

    def state(self) -> State:
        """Return the state's contents."""
        return read(self.deployment)

    def outputs(self) -> dict[str, Any]:
        """Return no outputs."""
        return {}

    def refusals(self) -> list[str]:
        """Refuse nothing."""
        return []

    def unlock(self) -> None:
        """Do nothing."""

    def destroy(self, watch: Callable[[Step], None], *, without_cluster: bool, first: object) -> list[str]:
        """Delete everything, or fail."""
        del watch, without_cluster, first
        if self._fails:
            return ["Error 503"]
        self.deployment = {"resources": []}
        return []


class _Inventory:
    """A project without leftovers, which remembers whose were looked for."""

    def __init__(self) -> None:
        self.asked: list[ClusterIdentity] = []

    def identify(self, cluster: ClusterIdentity) -> ClusterIdentity:
        """Return a cluster as it is."""
        return cluster

    def of_cluster(self, cluster: ClusterIdentity) -> Collection[CloudResource]:
        """Return nothing."""
        self.asked.append(cluster)
        return ()


@pytest.mark.parametrize("fails", [False, True])
def test_clusters_of_an_earlier_destroy_are_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """Neither when leftovers are looked for nor in the record for the next destroy; they keep their ids."""
    inventory = _Inventory()
    reached = Clouds({_ACCOUNT: cast("Inventory", inventory)})

    def reach(_: object) -> Clouds:
        return reached

    def inspect(*_: object) -> Inspection:
        return Inspection(names=names)

    monkeypatch.setattr(access, "reach", reach)
    names = CloudNames(namespace_uid="next", retained=frozenset({"new-disk"}))
    monkeypatch.setattr(inspection, "inspect", inspect)
    stack = _Stack(fails=fails)
    options = Options(config_file="Pulumi.dev.yaml", confirm=lambda _: True)
    outcome = destroy(cast("Stack", stack), options, Console(file=io.StringIO()))
    assert outcome is not None
    assert outcome.done is not fails
    if fails:
        record = stack.state().deleted
        assert record.retained == {"kept-disk", "new-disk"}
        found = {cluster.name: cluster for cluster in record.identities}
    else:
        found = {cluster.name: cluster for cluster in inventory.asked}
    assert found.keys() == {"train", "next"}
    assert found["train"] == _EARLIER
    assert found["next"] == replace(found["next"], namespace_uid="next", handles=frozenset())
