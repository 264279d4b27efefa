"""Documents about one cluster are put together."""

import pytest

from ebbtide.operations.adopting.found import POOLS, AdoptionError, Found, FoundResource, merged
from ebbtide.values.cloud_kind import CloudKind


def _pool(machine: str) -> FoundResource:
    return FoundResource(
        type=POOLS[CloudKind.GKE], id="a/b/c/cpu", name="cpu", inputs={"nodeConfig": {"machineType": machine}}
    )


def test_later_documents_replace_a_resource() -> None:
    """A pool that two documents have is adopted once, as the later one has it."""
    documents = [
        Found(cloud=CloudKind.GKE, account="acme-ml", resources=(_pool(machine),))
        for machine in ("e2-standard-4", "n2-standard-8")
    ]
    whole = merged([*documents, Found(objects=({"kind": "ClusterQueue"},))])
    assert whole.pools == (_pool("n2-standard-8"),)
    assert whole.objects


def test_documents_of_two_projects_are_refused() -> None:
    """Files of two clusters are told apart by their projects."""
    documents = [Found(cloud=CloudKind.GKE, account=account) for account in ("acme-ml", "acme-prod")]
    with pytest.raises(AdoptionError, match="two accounts, acme-ml and acme-prod"):
        merged(documents)
