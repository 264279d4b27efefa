"""Log Analytics workspaces, and the rules by which logs come into them."""

from collections.abc import Mapping
from typing import Any, Final, cast
from uuid import uuid4

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.errors import not_found, refused
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.azure.values import inner, items
from ebbtide_rehearsal.cloud.provider import RefusedError

_DOCS: Final = "learn.microsoft.com, azure/azure-monitor"
_RULES: Final = f"{_DOCS}/essentials/data-collection-rule-structure (2026)"
_JOINS: Final = "learn.microsoft.com, rest/api/monitor/data-collection-rule-associations (2022-06-01)"
_SETTINGS: Final = "learn.microsoft.com, rest/api/monitor/diagnostic-settings (2021-05-01-preview)"
_LEAST_DAYS: Final = 30
_MOST_DAYS: Final = 730


def _retention_fits(_arm: Arm, wish: Wish) -> RefusedError | None:
    days, sku = wish.inputs.get("retentionInDays"), inner(wish.inputs, "sku")
    if sku.get("name", "PerGB2018") != "PerGB2018" or days is None or _LEAST_DAYS <= days <= _MOST_DAYS:
        return None
    return refused("InvalidParameter", "'RetentionInDays' property doesn't match the SKU limits.")


def _workspace_answers(_arm: Arm, wish: Wish) -> Mapping[str, Any]:
    return {
        "customerId": wish.kept("customerId", lambda: str(uuid4())),
        "provisioningState": "Succeeded",
    }


def _workspaces_are_there(arm: Arm, wish: Wish) -> RefusedError | None:
    for one in items(inner(wish.inputs, "destinations"), "logAnalytics"):
        workspace = str(one.get("workspaceResourceId") or "")
        if not workspace or arm.lacks(workspace):
            return _payload(f"The workspace '{workspace}' of destination '{one.get('name')}' was not found.")
    return None


def _flows_lead_somewhere(_arm: Arm, wish: Wish) -> RefusedError | None:
    destinations: Mapping[str, Any] = inner(wish.inputs, "destinations")
    listed = [one for value in destinations.values() for one in _listed(value)]
    known = {one.get("name") for one in listed}
    for flow in items(wish.inputs, "dataFlows"):
        for name in items(flow, "destinations"):
            if name not in known:
                return _payload(f"Destination '{name}' is not defined.")
    return None


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _payload(why: str) -> RefusedError:
    return refused("InvalidPayload", f"Data collection rule is invalid. {why}")


def _rule_answers(_arm: Arm, wish: Wish) -> Mapping[str, Any]:
    return {
        "immutableId": wish.kept("immutableId", lambda: f"dcr-{uuid4().hex}"),
        "provisioningState": "Succeeded",
    }


def _joins_what_is_there(arm: Arm, wish: Wish) -> RefusedError | None:
    for name in ("resourceUri", "dataCollectionRuleId"):
        found = wish.inputs.get(name)
        if found is not None and arm.lacks(str(found)):
            return not_found(str(found))
    return None


def _audits_into_what_is_there(arm: Arm, wish: Wish) -> RefusedError | None:
    for name in ("resourceUri", "workspaceId"):
        found = wish.inputs.get(name)
        if found is not None and arm.lacks(str(found)):
            return not_found(str(found))
    return None


def _audits_somewhere(_arm: Arm, wish: Wish) -> RefusedError | None:
    sinks = ("workspaceId", "storageAccountId", "eventHubAuthorizationRuleId", "marketplacePartnerId")
    if any(wish.inputs.get(name) for name in sinks):
        return None
    return refused("BadRequest", "At least one data sink needs to be specified.")


def _one_of_two(_arm: Arm, wish: Wish) -> RefusedError | None:
    given = [name for name in ("dataCollectionRuleId", "dataCollectionEndpointId") if wish.inputs.get(name)]
    if len(given) == 1:
        return None
    return refused(
        "InvalidPayload",
        "Exactly one of 'dataCollectionRuleId' and 'dataCollectionEndpointId' has to be given.",
    )


KINDS: Final = (
    Kind(
        token="azure-native:operationalinsights:Workspace",  # noqa: S106 - a type's name
        api_version="2023-09-01",
        path=f"{ids.GROUP}/providers/Microsoft.OperationalInsights/workspaces/{{workspaceName}}",
        needed=("location",),
        replaces=frozenset({"location"}),
        limits={"workspaceName": Limit(r"^[A-Za-z0-9][A-Za-z0-9-]+[A-Za-z0-9]$", shortest=4, longest=63)},
        defaults={"sku": {"name": "PerGB2018"}, "retentionInDays": 30},
        refusals=(
            Refusal(
                "kept for 30 to 730 days",
                f"{_DOCS}/logs/data-retention-configure (2026), for PerGB2018",
                _retention_fits,
            ),
        ),
        outputs=_workspace_answers,
    ),
    Kind(
        token="azure-native:monitor:DataCollectionRule",  # noqa: S106 - a type's name
        api_version="2022-06-01",
        path=f"{ids.GROUP}/providers/Microsoft.Insights/dataCollectionRules/{{dataCollectionRuleName}}",
        needed=("location",),
        replaces=frozenset({"location"}),
        refusals=(
            Refusal("workspaces that are there", _RULES, _workspaces_are_there),
            Refusal("flows into destinations of the rule", _RULES, _flows_lead_somewhere),
        ),
        outputs=_rule_answers,
    ),
    Kind(
        token="azure-native:monitor:DataCollectionRuleAssociation",  # noqa: S106 - a type's name
        api_version="2022-06-01",
        path="{resourceUri}/providers/Microsoft.Insights/dataCollectionRuleAssociations/{associationName}",
        refusals=(
            Refusal("resource and rule are there", _JOINS, _joins_what_is_there),
            Refusal("either a rule or an endpoint", _JOINS, _one_of_two),
        ),
        outputs=lambda _arm, _wish: {"provisioningState": "Succeeded"},
    ),
    Kind(
        token="azure-native:monitor:DiagnosticSetting",  # noqa: S106 - a type's name
        api_version="2021-05-01-preview",
        path="{resourceUri}/providers/Microsoft.Insights/diagnosticSettings/{name}",
        refusals=(
            Refusal("resource and workspace are there", _SETTINGS, _audits_into_what_is_there),
            Refusal("at least one sink", _SETTINGS, _audits_somewhere),
        ),
    ),
)
