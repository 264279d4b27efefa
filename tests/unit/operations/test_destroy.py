"""A destroy that continues an earlier one: every cluster's leftovers are looked for."""

import io
from dataclasses import replace
from typing import cast

import pytest
from rich.console import Console

from ebbtide.clients.clouds.interfaces import ClusterIdentity
from ebbtide.operations import inspection
from ebbtide.operations.ending.destroy import Options, destroy
from ebbtide.operations.engine import state
from ebbtide.operations.engine.stack import Stack
from ebbtide.operations.engine.state import DeletedClusters
from ebbtide.operations.inspection import Inspection
from ebbtide.operations.leftovers.users import CloudNames
from tests.unit.operations.world import ACCOUNT, CLUSTER, STACK, World

_EARLIER = ClusterIdentity(
    account=ACCOUNT,
    location="us-central1-a",
    name="earlier",
    uid="e" * 64,
    namespace_uid="earlier",
    handles=frozenset({"old-disk"}),
)


@pytest.mark.parametrize("fails", [False, True])
def test_clusters_of_an_earlier_destroy_are_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """Neither when leftovers are looked for nor in the record for the next destroy; they keep their ids."""
    record = DeletedClusters((_EARLIER,), frozenset({"kept-disk"}))
    world = World(state.with_clusters({"resources": [STACK, CLUSTER]}, record)["resources"])
    world.serve(monkeypatch)
    world.fails = fails
    names = CloudNames(namespace_uid="next", retained=frozenset({"new-disk"}))

    def inspect(*_: object) -> Inspection:
        return Inspection(names=names)

    monkeypatch.setattr(inspection, "inspect", inspect)
    options = Options(config_file="Pulumi.prod.yaml", confirm=lambda _: True)
    outcome = destroy(cast("Stack", world), options, Console(file=io.StringIO()))
    assert outcome is not None
    assert outcome.done is not fails
    if fails:
        deleted = world.state().deleted
        assert deleted.retained == {"kept-disk", "new-disk"}
        found = {cluster.name: cluster for cluster in deleted.identities}
    else:
        found = {cluster.name: cluster for cluster in world.asked}
    assert found.keys() == {"earlier", "train"}
    assert found["earlier"] == _EARLIER
    assert found["train"] == replace(found["train"], namespace_uid="next", handles=frozenset())
