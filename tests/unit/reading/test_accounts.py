"""Projects and subscriptions of recorded clusters."""

from ebbtide.analysis.reading.pools import read_accounts
from ebbtide.declaration.cloud_kind import CloudKind
from tests.repository import ROOT
from tests.synth import synth_stack


def _accounts(stack: str, cloud: CloudKind) -> list[str]:
    return read_accounts(synth_stack(ROOT / stack), cloud, {})


def test_accounts_are_those_of_the_declaration() -> None:
    """A project is the resource's own, a subscription its provider's; the other cloud has none."""
    assert _accounts("Pulumi.dev.yaml", CloudKind.GKE) == ["acme-ml"]
    assert _accounts("Pulumi.dev.yaml", CloudKind.AKS) == []
    assert _accounts("Pulumi.dev-aks.yaml", CloudKind.AKS) == ["00000000-0000-0000-0000-000000000000"]
