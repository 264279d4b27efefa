"""Log Analytics and Azure Monitor workspaces, and data collection rules for logs and metrics."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.arm import (
    Request,
    ResourceKind,
    Rule,
    inner,
    items,
    not_found,
    outputs_of,
    refused,
)

WORKSPACE: Final = "azure-native:operationalinsights:Workspace"
_RULES: Final = "learn.microsoft.com, azure/azure-monitor/essentials/data-collection-rule-structure (2026)"
_JOINS: Final = "learn.microsoft.com, rest/api/monitor/data-collection-rule-associations (2022-06-01)"
_SETTINGS: Final = "learn.microsoft.com, rest/api/monitor/diagnostic-settings (2021-05-01-preview)"


def _answers(request: Request) -> Mapping[str, Any]:
    return {**outputs_of(request), "provisioningState": "Succeeded"}


def _workspaces_exist(request: Request) -> str | None:
    for kind, key in (("logAnalytics", "workspaceResourceId"), ("monitoringAccounts", "accountResourceId")):
        for destination in items(inner(request.inputs, "destinations"), kind):
            workspace = str(destination.get(key) or "")
            if not workspace or request.cloud.lacks(workspace):
                return refused(
                    "InvalidPayload",
                    f"Data collection rule is invalid. The workspace '{workspace}' of destination "
                    f"'{destination.get('name')}' was not found.",
                )
    return None


def _joins_existing(request: Request) -> str | None:
    for name in ("resourceUri", "dataCollectionRuleId", "dataCollectionEndpointId", "workspaceId"):
        target = request.inputs.get(name)
        if target is not None and request.cloud.lacks(str(target)):
            return not_found(str(target))
    return None


KINDS: Final = (
    ResourceKind(
        type=WORKSPACE,
        api_version="2023-09-01",
        outputs=_answers,
    ),
    ResourceKind(
        type="azure-native:monitor:AzureMonitorWorkspace", api_version="2023-04-03", outputs=_answers
    ),
    ResourceKind(
        type="azure-native:monitor:DataCollectionEndpoint", api_version="2022-06-01", outputs=_answers
    ),
    ResourceKind(
        type="azure-native:monitor:DataCollectionRule",
        api_version="2022-06-01",
        rules=(
            Rule("existing workspaces", _RULES, _workspaces_exist),
            Rule("existing endpoint", _RULES, _joins_existing),
        ),
        outputs=_answers,
    ),
    ResourceKind(
        type="azure-native:monitor:DataCollectionRuleAssociation",
        api_version="2022-06-01",
        rules=(Rule("existing resource and rule", _JOINS, _joins_existing),),
        outputs=lambda _request: {"provisioningState": "Succeeded"},
    ),
    ResourceKind(
        type="azure-native:monitor:DiagnosticSetting",
        api_version="2021-05-01-preview",
        rules=(Rule("existing resource and workspace", _SETTINGS, _joins_existing),),
    ),
)
