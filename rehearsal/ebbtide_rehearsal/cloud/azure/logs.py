"""Log Analytics and Azure Monitor workspaces, and data collection rules for logs and metrics."""

from collections.abc import Mapping
from typing import Any, Final, cast

from ebbtide_rehearsal.cloud.azure.answers import outputs_of
from ebbtide_rehearsal.cloud.azure.errors import not_found, refused
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, ResourceKind, Rule
from ebbtide_rehearsal.cloud.azure.values import inner, items

_DOCS: Final = "learn.microsoft.com, azure/azure-monitor"
_RULES: Final = f"{_DOCS}/essentials/data-collection-rule-structure (2026)"
_JOINS: Final = "learn.microsoft.com, rest/api/monitor/data-collection-rule-associations (2022-06-01)"
_SETTINGS: Final = "learn.microsoft.com, rest/api/monitor/diagnostic-settings (2021-05-01-preview)"
_LEAST_DAYS: Final = 30
_MOST_DAYS: Final = 730


def _retention_fits(request: Request) -> str | None:
    days, sku = request.inputs.get("retentionInDays"), inner(request.inputs, "sku")
    if sku.get("name", "PerGB2018") != "PerGB2018" or days is None or _LEAST_DAYS <= days <= _MOST_DAYS:
        return None
    return refused("InvalidParameter", "'RetentionInDays' property doesn't match the SKU limits.")


def _answers(request: Request) -> Mapping[str, Any]:
    return {**outputs_of(request), "provisioningState": "Succeeded"}


def _workspaces_exist(request: Request) -> str | None:
    for kind, key in (("logAnalytics", "workspaceResourceId"), ("monitoringAccounts", "accountResourceId")):
        for destination in items(inner(request.inputs, "destinations"), kind):
            workspace = str(destination.get(key) or "")
            if not workspace or request.cloud.lacks(workspace):
                return _payload(
                    f"The workspace '{workspace}' of destination '{destination.get('name')}' was not found."
                )
    return None


def _flows_lead_somewhere(request: Request) -> str | None:
    destinations: Mapping[str, Any] = inner(request.inputs, "destinations")
    listed = [destination for value in destinations.values() for destination in _listed(value)]
    known = {destination.get("name") for destination in listed}
    for flow in items(request.inputs, "dataFlows"):
        for name in items(flow, "destinations"):
            if name not in known:
                return _payload(f"Destination '{name}' is not defined.")
    return None


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _payload(why: str) -> str:
    return refused("InvalidPayload", f"Data collection rule is invalid. {why}")


def _joins_existing(request: Request) -> str | None:
    for name in ("resourceUri", "dataCollectionRuleId", "dataCollectionEndpointId", "workspaceId"):
        target = request.inputs.get(name)
        if target is not None and request.cloud.lacks(str(target)):
            return not_found(str(target))
    return None


def _audits_somewhere(request: Request) -> str | None:
    sinks = ("workspaceId", "storageAccountId", "eventHubAuthorizationRuleId", "marketplacePartnerId")
    if any(request.inputs.get(name) for name in sinks):
        return None
    return refused("BadRequest", "At least one data sink needs to be specified.")


def _one_of_two(request: Request) -> str | None:
    given = [
        name for name in ("dataCollectionRuleId", "dataCollectionEndpointId") if request.inputs.get(name)
    ]
    if len(given) == 1:
        return None
    return refused(
        "InvalidPayload",
        "Exactly one of 'dataCollectionRuleId' and 'dataCollectionEndpointId' has to be given.",
    )


KINDS: Final = (
    ResourceKind(
        type="azure-native:operationalinsights:Workspace",
        api_version="2023-09-01",
        rules=(
            Rule(
                "kept for 30 to 730 days",
                f"{_DOCS}/logs/data-retention-configure (2026), for PerGB2018",
                _retention_fits,
            ),
        ),
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
            Rule("workspaces that are there", _RULES, _workspaces_exist),
            Rule("endpoint is there", _RULES, _joins_existing),
            Rule("flows into destinations of the rule", _RULES, _flows_lead_somewhere),
        ),
        outputs=_answers,
    ),
    ResourceKind(
        type="azure-native:monitor:DataCollectionRuleAssociation",
        api_version="2022-06-01",
        rules=(
            Rule("resource and rule are there", _JOINS, _joins_existing),
            Rule("either a rule or an endpoint", _JOINS, _one_of_two),
        ),
        outputs=lambda _request: {"provisioningState": "Succeeded"},
    ),
    ResourceKind(
        type="azure-native:monitor:DiagnosticSetting",
        api_version="2021-05-01-preview",
        rules=(
            Rule("resource and workspace are there", _SETTINGS, _joins_existing),
            Rule("at least one sink", _SETTINGS, _audits_somewhere),
        ),
    ),
)
