"""The first update of a stack whose cluster exists."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import CloudApiError
from ebbtide.operations.engine.state import CLUSTERS
from ebbtide.operations.leftovers.stack import lost_state_refusals
from tests.declarations import AKS, GKE, Declaration
from tests.synth import synth


@pytest.mark.parametrize(("declared", "listing"), [(GKE, "gke_clusters"), (AKS, "aks_clusters")])
def test_a_cluster_that_exists_is_not_created_beside(
    monkeypatch: pytest.MonkeyPatch, declared: Declaration, listing: str
) -> None:
    """A stack without resources asks the cloud first; one with resources, or no answer, is not refused."""
    recording = synth(declared)
    (cluster,) = (item for item in recording if item.type in CLUSTERS)
    name = str(cluster.id).rpartition("/")[2]
    found = {"id": str(cluster.id).upper(), "name": name, "location": declared["cloud"]["location"]}
    existing: list[Mapping[str, Any]] = [found]

    def listed(_account: str) -> Sequence[Mapping[str, Any]]:
        return existing

    def silent(_account: str) -> Sequence[Mapping[str, Any]]:
        raise CloudApiError("It does not answer.")

    monkeypatch.setattr(connect, listing, listed)
    (message,) = lost_state_refusals(recording, {}, "prod")
    assert f"the state of stack prod is empty, and cluster {name} exists" in message
    assert f" adopt prod --cluster {name} " in message
    resource = {"type": cluster.type, "urn": cluster.urn, "custom": True}
    assert list(lost_state_refusals(recording, {"resources": [resource]}, "prod")) == []
    existing.clear()
    assert list(lost_state_refusals(recording, {}, "prod")) == []
    monkeypatch.setattr(connect, listing, silent)
    assert list(lost_state_refusals(recording, {}, "prod")) == []
