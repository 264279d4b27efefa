"""AKS clusters: refusals, the settings of their autoscaler, and credentials."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.autoscaler.nodes import Autoscaling
from ebbtide_rehearsal.cloud.azure.clusters import RULES
from ebbtide_rehearsal.cloud.pools import pools, settings_of
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import QUOTA, InjectedFault
from rehearsal.tests.unit.azure_cloud import GROUP, MANAGED_CLUSTER, SYSTEM, Azure

_KIND = "containerservice:ManagedCluster"
CHANGES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "no new pool through the cluster": [
        ({"agentPoolProfiles": [SYSTEM, {**SYSTEM, "name": "second"}]}, "A new agent pool was introduced")
    ],
    "fixed OIDC issuer": [
        (
            {"oidcIssuerProfile": {"enabled": False}, "securityProfile": {}},
            "OIDC issuer feature cannot be disabled",
        )
    ],
    "fixed API server and disk encryption": [
        (
            {"apiServerAccessProfile": {"enablePrivateCluster": True}},
            "apiServerAccessProfile.enablePrivateCluster' is not allowed",
        ),
        (
            {"diskEncryptionSetID": f"{GROUP}/providers/Microsoft.Compute/diskEncryptionSets/keys"},
            "diskEncryptionSetID' is not allowed",
        ),
    ],
    "of the system pool": [
        (
            {"agentPoolProfiles": [{**SYSTEM, "vmSize": "Standard_D8s_v5"}]},
            "Changing property 'agentPoolProfile.vmSize' is not allowed",
        )
    ],
}
"""What is asked for over a good cluster, by the rule that it breaks, and what AKS says."""


def test_every_rule_has_a_case() -> None:
    """No rule of clusters goes without a case, and each says where it was read."""
    elsewhere = {"running cluster", "sufficient cluster quota"}
    assert {rule.name for rule in RULES} == {*CHANGES, *elsewhere} - {"of the system pool"}
    assert all(rule.source for rule in RULES)


def test_changes_that_break_a_rule(tmp_path: Path) -> None:
    """AKS refuses them; the maximum of the system pool changes, and an omitted list of networks stays."""
    azure = Azure(tmp_path).with_network()
    office: dict[str, Any] = {
        **MANAGED_CLUSTER,
        "apiServerAccessProfile": {"authorizedIPRanges": ["203.0.113.0/24"]},
    }
    made = azure.make(_KIND, **office)
    for changes, says in (case for cases in CHANGES.values() for case in cases):
        with pytest.raises(RefusedError) as refused:
            azure.change(_KIND, made, office, **{**office, **changes})
        assert says in str(refused.value)
    larger = {**MANAGED_CLUSTER, "agentPoolProfiles": [{**SYSTEM, "maxCount": 9}]}
    after = azure.change(_KIND, made, office, **larger)
    assert after["apiServerAccessProfile"] == {"authorizedIPRanges": ["203.0.113.0/24"]}
    assert [pool.maximum for pool in pools(azure.store, made.id)] == [9]


def test_a_subscription_with_clusters_enough(tmp_path: Path) -> None:
    """The quota for clusters is one of its own (azure-aks-docs, quotas-skus-regions)."""
    azure = Azure(tmp_path).with_cluster()
    azure.store.inject(InjectedFault(QUOTA, "managedClusters", details={"limit": 1}))
    with pytest.raises(RefusedError, match="Maximum allowed: 1, Current usage: 1, Additional requested: 1"):
        azure.make_cluster(resourceName="second", agentPoolProfiles=[{**SYSTEM, "vnetSubnetID": None}])


def test_no_administrator_gets_into_a_cluster_without_local_accounts(tmp_path: Path) -> None:
    """Administrator credentials are refused with AKS's error if local accounts are disabled
    (Azure/bicep#11601)."""
    azure = Azure(tmp_path).with_cluster()
    token = "azure-native:containerservice:listManagedClusterAdminCredentials"  # noqa: S105 - a function
    with pytest.raises(RefusedError, match="Getting static credential is not allowed"):
        azure.provider.invoke(token, {"resourceGroupName": "train", "resourceName": "train"})


def test_settings_of_the_autoscaler(tmp_path: Path) -> None:
    """Every setting of the profile reaches the autoscaler, an omitted profile stays, one setting alone
    changes no other, and without a profile they are the defaults."""
    azure = Azure(tmp_path).with_network()
    made = azure.make_cluster()
    assert settings_of(azure.store, made.id) == Autoscaling()
    profile: dict[str, Any] = {
        "expander": "priority",
        "scaleDownUnneededTime": "3m",
        "scaleDownDelayAfterAdd": "0m",
        "scaleDownUtilizationThreshold": "0.7",
        "ignoreDaemonsetsUtilization": True,
        "maxGracefulTerminationSec": "30",
        "skipNodesWithLocalStorage": "true",
        "skipNodesWithSystemPods": "false",
    }
    expected = Autoscaling(
        expander="priority",
        idle_seconds=180,
        delay_after_add_seconds=0,
        utilization=0.7,
        daemons_count=False,
        eviction_seconds=30,
        skip_local_storage=True,
        skip_system_pods=False,
    )
    inputs = {**MANAGED_CLUSTER, "autoScalerProfile": profile}
    for changed in (inputs, {**MANAGED_CLUSTER, "tags": {"a": "b"}}):
        azure.change(_KIND, made, MANAGED_CLUSTER, **changed)
        assert settings_of(azure.store, made.id) == expected
    azure.change(
        _KIND, made, MANAGED_CLUSTER, **{**MANAGED_CLUSTER, "autoScalerProfile": {"expander": "least-waste"}}
    )
    assert settings_of(azure.store, made.id) == Autoscaling(expander="least-waste")
