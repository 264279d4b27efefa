"""The first update of a stack whose cluster exists."""

from collections.abc import Collection, Mapping
from types import SimpleNamespace

import pytest

from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account, CloudApiError
from ebbtide.operations.engine.state import CLUSTERS
from ebbtide.operations.leftovers.stack import lost_state_refusals
from tests.declarations import AKS, GKE, Declaration
from tests.synth import synth


@pytest.mark.parametrize("declared", [GKE, AKS], ids=["gke", "aks"])
def test_a_cluster_that_exists_is_not_created_beside(
    monkeypatch: pytest.MonkeyPatch, declared: Declaration
) -> None:
    """A stack without resources asks the cloud first; one with resources, or no answer, is not refused."""
    recording = synth(declared)
    (cluster,) = (item for item in recording if item.type in CLUSTERS)
    name = str(cluster.id).rpartition("/")[2]
    existing = {str(cluster.id)}

    def of(ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return {identity: {} for identity in ids if identity in existing}

    def silent(_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        raise CloudApiError("It does not answer.")

    asked = SimpleNamespace(existing=of)

    def inventory(_account: Account) -> SimpleNamespace:
        return asked

    monkeypatch.setattr(connect, "inventory", inventory)
    (message,) = lost_state_refusals(recording, {}, "prod")
    assert f"the state of stack prod is empty, and cluster {name} exists" in message
    assert f" adopt prod --cluster {name} " in message
    resource = {"type": cluster.type, "urn": cluster.urn, "custom": True}
    assert list(lost_state_refusals(recording, {"resources": [resource]}, "prod")) == []
    existing.clear()
    assert list(lost_state_refusals(recording, {}, "prod")) == []
    asked.existing = silent
    assert list(lost_state_refusals(recording, {}, "prod")) == []
