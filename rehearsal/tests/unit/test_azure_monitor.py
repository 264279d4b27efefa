"""Logs and metrics of Azure Monitor: requests that Azure rejects."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.provider import RefusedError
from rehearsal.tests.unit.azure_cloud import CLUSTER, GROUP, Azure

_WORKSPACE = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"


def _rule(azure: Azure) -> str:
    return azure.make(
        "monitor:DataCollectionRule",
        resourceGroupName="train",
        dataCollectionRuleName="logs",
        destinations={"logAnalytics": [{"name": "here", "workspaceResourceId": _WORKSPACE}]},
        dataFlows=[{"streams": ["Microsoft-ContainerLogV2"], "destinations": ["here"]}],
    ).id


def test_rules_lead_to_workspaces_that_are_there(tmp_path: Path) -> None:
    """A data collection rule is refused until its workspace exists."""
    azure = Azure(tmp_path).with_cluster()
    with pytest.raises(
        RefusedError, match=f"The workspace '{_WORKSPACE}' of destination 'here' was not found"
    ):
        _rule(azure)
    azure.make("operationalinsights:Workspace", resourceGroupName="train", workspaceName="logs")
    rule = _rule(azure)
    joined = azure.make(
        "monitor:DataCollectionRuleAssociation",
        resourceUri=CLUSTER,
        associationName="ContainerInsightsExtension",
        dataCollectionRuleId=rule,
    )
    assert joined.id.startswith(f"{CLUSTER}/providers/Microsoft.Insights/dataCollectionRuleAssociations/")


def test_metrics_need_their_workspace_and_endpoint(tmp_path: Path) -> None:
    """A rule for metrics is refused until the workspace and the endpoint that it names exist."""
    azure = Azure(tmp_path).with_cluster()
    account = f"{GROUP}/providers/Microsoft.Monitor/accounts/metrics"
    endpoint = f"{GROUP}/providers/Microsoft.Insights/dataCollectionEndpoints/metrics"

    def make() -> str:
        return azure.make(
            "monitor:DataCollectionRule",
            resourceGroupName="train",
            dataCollectionRuleName="metrics",
            dataCollectionEndpointId=endpoint,
            destinations={"monitoringAccounts": [{"name": "here", "accountResourceId": account}]},
            dataFlows=[{"streams": ["Microsoft-PrometheusMetrics"], "destinations": ["here"]}],
        ).id

    with pytest.raises(RefusedError, match="of destination 'here' was not found"):
        make()
    azure.make(
        "monitor:AzureMonitorWorkspace", resourceGroupName="train", azureMonitorWorkspaceName="metrics"
    )
    with pytest.raises(RefusedError, match="dataCollectionEndpoints/metrics"):
        make()
    azure.make(
        "monitor:DataCollectionEndpoint", resourceGroupName="train", dataCollectionEndpointName="metrics"
    )
    assert make().endswith("/dataCollectionRules/metrics")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"resourceUri": f"{CLUSTER}2"}, "managedClusters/train2"),
        ({"dataCollectionRuleId": f"{GROUP}/providers/Microsoft.Insights/dataCollectionRules/x"}, "Rules/x"),
    ],
)
def test_associations_of_nothing(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    """Resource and rule must exist."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("operationalinsights:Workspace", resourceGroupName="train", workspaceName="logs")
    given = {"resourceUri": CLUSTER, "associationName": "a", "dataCollectionRuleId": _rule(azure)}
    with pytest.raises(RefusedError, match=says):
        azure.make("monitor:DataCollectionRuleAssociation", **{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"resourceUri": f"{CLUSTER}2"}, "managedClusters/train2"),
        ({"workspaceId": f"{_WORKSPACE}2"}, "logs2"),
    ],
)
def test_diagnostic_settings_of_nothing(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    """Cluster and workspace must exist."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("operationalinsights:Workspace", resourceGroupName="train", workspaceName="logs")
    logs = [{"category": "kube-audit-admin", "enabled": True}]
    given = {"resourceUri": CLUSTER, "name": "audit", "workspaceId": _WORKSPACE, "logs": logs}
    made = azure.make("monitor:DiagnosticSetting", **given)
    assert made.id == f"{CLUSTER}/providers/Microsoft.Insights/diagnosticSettings/audit"
    with pytest.raises(RefusedError, match=says):
        azure.make("monitor:DiagnosticSetting", **{**given, "name": "other", **changes})
