"""AKS clusters: refusals, the settings of their autoscaler, credentials, logs and metrics."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.azure.clusters import RULES
from ebbtide_rehearsal.cloud.pools import Autoscaling, pools, settings_of
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import QUOTA, InjectedFault
from rehearsal.tests.unit.azure_cloud import CLUSTER, GROUP, MANAGED_CLUSTER, SUBNET, SYSTEM, Azure

_KIND = "containerservice:ManagedCluster"
_NETWORK = MANAGED_CLUSTER["networkProfile"]
_IDENTITY = {
    "type": "UserAssigned",
    "userAssignedIdentities": [f"{GROUP}/providers/M.I/userAssignedIdentities/x"],
}
_LOGS = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "existing identity": ({"identity": _IDENTITY}, 'Code="ResourceNotFound"'),
    "disabled local accounts need Entra ID": (
        {"aadProfile": None},
        "Disabling local accounts is only allowed",
    ),
    "Azure RBAC needs Entra ID": ({"enableRBAC": False}, "aadProfile.enableAzureRBAC is invalid"),
    "cost analysis needs paid tier": (
        {"metricsProfile": {"costAnalysis": {"enabled": True}}},
        "it needs the tier Standard or Premium",
    ),
    "new node resource group": ({"nodeResourceGroup": "train"}, "the resource group train already exists"),
    "existing workspace": (
        {
            "addonProfiles": {
                "omsagent": {"enabled": True, "config": {"logAnalyticsWorkspaceResourceID": _LOGS}}
            }
        },
        "was not found",
    ),
    "services outside of existing subnets": (
        {"networkProfile": {**_NETWORK, "serviceCidr": "10.224.0.0/20", "dnsServiceIP": "10.224.0.10"}},
        "The specified service CIDR 10.224.0.0/20 is conflicted with an existing subnet CIDR 10.224.0.0/16",
    ),
    "pods outside of other ranges": (
        {"networkProfile": {**_NETWORK, "podCidr": "10.0.0.0/14"}},
        "the pod CIDR 10.0.0.0/14 overlaps 10.0.0.0/16",
    ),
}
"""What is asked for over a good cluster, by the rule that it breaks, and what AKS says."""

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
"""The same for a cluster that exists."""


def test_every_rule_has_a_case() -> None:
    """No rule of clusters goes without a case, and each says where it was read."""
    elsewhere = {"running cluster", "sufficient cluster quota"}
    assert {rule.name for rule in RULES} == {*CASES, *CHANGES, *elsewhere} - {"of the system pool"}
    assert all(rule.source for rule in RULES)


@pytest.mark.parametrize(("inputs", "says"), [pytest.param(*case, id=name) for name, case in CASES.items()])
def test_a_cluster_that_breaks_a_rule_is_not_made(tmp_path: Path, inputs: dict[str, Any], says: str) -> None:
    """AKS's own sentence comes back, and no control plane is started."""
    azure = Azure(tmp_path).with_network()
    before = azure.ids()
    with pytest.raises(RefusedError) as refused:
        azure.make_cluster(**inputs)
    assert says in str(refused.value)
    assert azure.ids() == before
    assert azure.planes.running == {}


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


def test_a_subnet_in_use_stays(tmp_path: Path) -> None:
    """The cluster's nodes are in it; once the cluster is deleted, it can be deleted."""
    azure = Azure(tmp_path).with_cluster()
    with pytest.raises(RefusedError, match="is in use by"):
        azure.remove("network:Subnet", SUBNET)
    azure.remove(_KIND, CLUSTER)
    azure.remove("network:Subnet", SUBNET)


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


_WITHIN = {"resourceGroupName": "train"}
_ACCOUNT = f"{GROUP}/providers/Microsoft.Monitor/accounts/metrics"
_ENDPOINT = f"{GROUP}/providers/Microsoft.Insights/dataCollectionEndpoints/metrics"
_WORKSPACE = ("operationalinsights:Workspace", {**_WITHIN, "workspaceName": "logs"})
_METRICS = ("monitor:AzureMonitorWorkspace", {**_WITHIN, "azureMonitorWorkspaceName": "metrics"})
_RULE = {
    **_WITHIN,
    "dataCollectionRuleName": "logs",
    "destinations": {"logAnalytics": [{"name": "here", "workspaceResourceId": _LOGS}]},
    "dataFlows": [{"streams": ["Microsoft-ContainerLogV2"], "destinations": ["here"]}],
}
_PROMETHEUS = {
    **_WITHIN,
    "dataCollectionRuleName": "metrics",
    "dataCollectionEndpointId": _ENDPOINT,
    "destinations": {"monitoringAccounts": [{"name": "here", "accountResourceId": _ACCOUNT}]},
    "dataFlows": [{"streams": ["Microsoft-PrometheusMetrics"], "destinations": ["here"]}],
}
_ASSOCIATION = {
    "resourceUri": CLUSTER,
    "associationName": "a",
    "dataCollectionRuleId": f"{GROUP}/providers/Microsoft.Insights/dataCollectionRules/x",
}
_AUDIT = {
    "resourceUri": CLUSTER,
    "name": "audit",
    "workspaceId": _LOGS,
    "logs": [{"category": "kube-audit-admin", "enabled": True}],
}


@pytest.mark.parametrize(
    ("existing", "kind", "inputs", "says"),
    [
        ([], "DataCollectionRule", _RULE, "workspaces/logs' of destination 'here' was not found"),
        ([], "DataCollectionRule", _PROMETHEUS, "of destination 'here' was not found"),
        ([_METRICS], "DataCollectionRule", _PROMETHEUS, "dataCollectionEndpoints/metrics"),
        ([], "DataCollectionRuleAssociation", _ASSOCIATION, "Rules/x"),
        ([], "DataCollectionRuleAssociation", {**_ASSOCIATION, "resourceUri": f"{CLUSTER}2"}, "train2"),
        ([_WORKSPACE], "DiagnosticSetting", {**_AUDIT, "resourceUri": f"{CLUSTER}2"}, "train2"),
        ([_WORKSPACE], "DiagnosticSetting", {**_AUDIT, "workspaceId": f"{_LOGS}2"}, "logs2"),
    ],
)
def test_logs_and_metrics_of_what_does_not_exist(
    tmp_path: Path,
    existing: list[tuple[str, dict[str, Any]]],
    kind: str,
    inputs: dict[str, Any],
    says: str,
) -> None:
    """Azure Monitor refuses rules, associations and settings that lead to a resource that does not exist."""
    azure = Azure(tmp_path).with_cluster()
    for earlier, given in existing:
        azure.make(earlier, **given)
    with pytest.raises(RefusedError, match=says):
        azure.make(f"monitor:{kind}", **inputs)
