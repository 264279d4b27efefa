"""Container insights and its workspace, at named paths."""

from typing import Any

import pulumi
import pulumi_azure_native as azure_native

from components.aks.monitoring import LogCollection, LogCollectionArgs, LogStore, LogStoreArgs
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.addons import Logs

WORKSPACE = "azure-native:operationalinsights:Workspace"
RULE = "azure-native:monitor:DataCollectionRule"
ASSOCIATION = "azure-native:monitor:DataCollectionRuleAssociation"


def made(**declared: Any) -> tuple[Recording, dict[str, Any]]:
    """Return the created resources and the cluster's inputs."""
    profiles: dict[str, Any] = {}

    def program() -> None:
        provider = azure_native.Provider("azure", location="eastus")
        opts = pulumi.ResourceOptions(providers=[provider])
        store = LogStore(
            "logs",
            LogStoreArgs(
                logs=Logs.model_validate(declared),
                name="train",
                resource_group="train",
                location="eastus",
                labels={"ebbtide-owner": "vision-team"},
            ),
            opts,
        )
        profiles.update(store.addon_profiles)
        LogCollection(
            "collection",
            LogCollectionArgs(rule=store.rule, workspace=store.workspace, cluster="/the/cluster"),
            opts,
        )

    return record(program, project="test", stack="test"), profiles


def test_logs_are_kept_as_long_as_declared() -> None:
    """Retention and daily limit reach the workspace, and without a limit there is none."""
    (default,) = made()[0].of_type(WORKSPACE)
    assert default.inputs["retentionInDays"] == 30
    assert "workspaceCapping" not in default.inputs
    (declared,) = made(retentionDays=90, dailyGib=2.5)[0].of_type(WORKSPACE)
    assert declared.inputs["retentionInDays"] == 90
    assert declared.inputs["workspaceCapping"] == {"dailyQuotaGb": 2.5}
    assert declared.inputs["tags"] == {"ebbtide-owner": "vision-team"}


def test_what_comes_in_is_logs_and_what_became_of_pods() -> None:
    """The rule sends three streams to the workspace, in the schema that the profile's query reads."""
    recording, _ = made()
    (rule,) = recording.of_type(RULE)
    inputs: Any = rule.inputs
    (extension,) = inputs["dataSources"]["extensions"]
    assert extension["extensionSettings"]["dataCollectionSettings"]["enableContainerLogV2"] is True
    assert "Microsoft-ContainerLogV2" in extension["streams"]
    (flow,) = inputs["dataFlows"]
    assert flow["streams"] == extension["streams"]
    (workspace,) = recording.of_type(WORKSPACE)
    (destination,) = inputs["destinations"]["logAnalytics"]
    assert destination["workspaceResourceId"] == workspace.id
    assert flow["destinations"] == [destination["name"]]


def test_the_cluster_is_part_of_the_rule() -> None:
    """The association has the one name that the agent knows."""
    recording, _ = made()
    (association,) = recording.of_type(ASSOCIATION)
    assert association.inputs["associationName"] == "ContainerInsightsExtension"
    assert association.inputs["resourceUri"] == "/the/cluster"
    assert association.inputs["dataCollectionRuleId"] == recording.of_type(RULE)[0].id


def test_changes_and_sign_ins_are_audited() -> None:
    """Into tables of their own; reads are left out, whose volume is many times as large."""
    recording, _ = made()
    (setting,) = recording.of_type("azure-native:monitor:DiagnosticSetting")
    inputs: Any = setting.inputs
    assert inputs["resourceUri"] == "/the/cluster"
    assert inputs["workspaceId"] == recording.of_type(WORKSPACE)[0].id
    assert inputs["logAnalyticsDestinationType"] == "Dedicated"
    assert [item["category"] for item in inputs["logs"] if item["enabled"]] == ["kube-audit-admin", "guard"]
    assert setting.deleted_with is None


def test_the_agent_signs_in_as_the_cluster() -> None:
    """No key of the workspace is handed out."""
    _, profiles = made()
    assert profiles["omsagent"]["enabled"] is True
    assert profiles["omsagent"]["config"]["useAADAuth"] == "true"
