"""Logs and metrics: a Log Analytics workspace for pods, including deleted ones, and for audit logs of the
control plane; and an Azure Monitor workspace.

On GKE, Cloud Logging has the logs by default, and managed Prometheus is a setting of the cluster.
"""

from collections.abc import Mapping

import pulumi
from pulumi_azure_native import monitor, operationalinsights

from ebbtide.declaration.model.addons import Logs
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.physical_names import DATA_COLLECTION, MONITOR_WORKSPACE, WORKSPACE, fitting

from ..topology import Labels

_LOG_STREAMS = ["Microsoft-ContainerLogV2", "Microsoft-KubeEvents", "Microsoft-KubePodInventory"]
"""Logs, events and inventory of pods: enough to trace a deleted pod. Metrics are not collected, since they
are billed."""

_EXTENSION = "ContainerInsightsExtension"
"""Name of the association; the agent accepts no other."""

_LOG_DESTINATION = "ciworkspace"


_AUDIT = ("kube-audit-admin", "guard")
"""Categories of the control plane's logs: requests that change something, and sign-ins with Entra ID. Reads
are only in `kube-audit`, which costs many times as much (azure-aks-docs, monitor-aks-reference, 2026)."""

_STREAMS = ["Microsoft-PrometheusMetrics"]
_ASSOCIATION = "ContainerInsightsMetricsExtension"
_DESTINATION = "MonitoringAccount1"


class LogStore(pulumi.ComponentResource):
    """A Log Analytics workspace and its data collection rule, created before the cluster, whose
    `addon_profiles` refer to them.

    A deleted workspace is kept for 14 days, unbilled, and restored when a workspace of the same name is
    created in its group. Sources: microsoft/Docker-Provider, scripts/onboarding/aks/onboarding-msi-bicep
    (2024-10); azure-monitor docs, container-insights-data-collection-dcr (2026); azure-native 3.29.
    """

    rule: pulumi.Output[str]
    """Resource id of the rule."""
    workspace: pulumi.Output[str]
    """Resource id of the workspace."""
    addon_profiles: Mapping[str, Mapping[str, pulumi.Input[object]]]
    """For the cluster: `addonProfiles` that run Container insights' agent with the cluster's identity."""

    def __init__(
        self,
        name: str,
        declaration: Declaration,
        logs: Logs,
        resource_group: pulumi.Input[str],
        labels: Labels,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("ebbtide:addons:LogStore", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        limit = logs.daily_gib
        called, location = fitting(f"{declaration.name}-logs", WORKSPACE), declaration.cloud.location
        workspace = operationalinsights.Workspace(
            f"{name}-workspace",
            workspace_name=called,
            resource_group_name=resource_group,
            location=location,
            sku={"name": operationalinsights.WorkspaceSkuNameEnum.PER_GB2018},
            retention_in_days=logs.retention_days,
            workspace_capping=(
                None if limit is None else operationalinsights.WorkspaceCappingArgs(daily_quota_gb=limit)
            ),
            tags=dict(labels),
            opts=inside,
        )
        rule = monitor.DataCollectionRule(
            f"{name}-rule",
            data_collection_rule_name=called,
            resource_group_name=resource_group,
            location=location,
            kind="Linux",
            data_sources={
                "extensions": [
                    {
                        "name": _EXTENSION,
                        "extension_name": "ContainerInsights",
                        "streams": _LOG_STREAMS,
                        "extension_settings": {
                            "dataCollectionSettings": {
                                "interval": "5m",
                                "namespaceFilteringMode": "Off",
                                "enableContainerLogV2": True,
                            }
                        },
                    }
                ]
            },
            destinations={
                "log_analytics": [{"name": _LOG_DESTINATION, "workspace_resource_id": workspace.id}]
            },
            data_flows=[{"streams": _LOG_STREAMS, "destinations": [_LOG_DESTINATION]}],
            tags=dict(labels),
            opts=inside,
        )
        self.rule, self.workspace = rule.id, workspace.id
        self.addon_profiles = {
            "omsagent": {
                "enabled": True,
                "config": {"logAnalyticsWorkspaceResourceID": workspace.id, "useAADAuth": "true"},
            }
        }
        self.register_outputs({"rule": self.rule})


class LogCollection(pulumi.ComponentResource):
    """The association of a cluster with a data collection rule, and its diagnostic setting. Both depend on
    the cluster, and nothing depends on them."""

    def __init__(
        self, name: str, store: LogStore, cluster: pulumi.CustomResource, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__("ebbtide:addons:LogCollection", name, {}, opts)
        monitor.DataCollectionRuleAssociation(
            f"{name}-association",
            association_name=_EXTENSION,
            resource_uri=cluster.id,
            data_collection_rule_id=store.rule,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=cluster),
        )
        monitor.DiagnosticSetting(
            f"{name}-audit",
            name="audit",
            resource_uri=cluster.id,
            workspace_id=store.workspace,
            log_analytics_destination_type="Dedicated",
            logs=[{"category": category, "enabled": True} for category in _AUDIT],
            # Azure keeps the setting of a deleted cluster and applies it to a new cluster of the same name
            # (azure-monitor docs, diagnostic-settings, 2026): so it gets its own deletion.
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class MetricStore(pulumi.ComponentResource):
    """An Azure Monitor workspace, and the data collection rule that sends a cluster's metrics to it.

    The cluster's `azureMonitorProfile` runs the agent, with an identity that the association admits. Samples
    are kept for 18 months. Sources: azure-monitor docs, kubernetes-monitoring-enable (2026); Azure/ARO-HCP,
    dev-infrastructure/modules/metrics/datacollection.bicep (2026); azure-native 3.29.
    """

    workspace: pulumi.Output[str]
    """Resource id of the workspace."""

    def __init__(
        self,
        name: str,
        declaration: Declaration,
        cluster: pulumi.CustomResource,
        resource_group: pulumi.Input[str],
        labels: Labels,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ebbtide:addons:MetricStore", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        called, location = f"{declaration.name}-metrics", declaration.cloud.location
        collection = fitting(called, DATA_COLLECTION)
        workspace = monitor.AzureMonitorWorkspace(
            f"{name}-workspace",
            azure_monitor_workspace_name=fitting(called, MONITOR_WORKSPACE),
            resource_group_name=resource_group,
            location=location,
            tags=dict(labels),
            opts=inside,
        )
        endpoint = monitor.DataCollectionEndpoint(
            f"{name}-endpoint",
            data_collection_endpoint_name=collection,
            resource_group_name=resource_group,
            location=location,
            kind="Linux",
            tags=dict(labels),
            opts=inside,
        )
        rule = monitor.DataCollectionRule(
            f"{name}-rule",
            data_collection_rule_name=collection,
            resource_group_name=resource_group,
            location=location,
            kind="Linux",
            data_collection_endpoint_id=endpoint.id,
            data_sources={"prometheus_forwarder": [{"name": "PrometheusDataSource", "streams": _STREAMS}]},
            destinations={
                "monitoring_accounts": [{"name": _DESTINATION, "account_resource_id": workspace.id}]
            },
            data_flows=[{"streams": _STREAMS, "destinations": [_DESTINATION]}],
            tags=dict(labels),
            opts=inside,
        )
        monitor.DataCollectionRuleAssociation(
            f"{name}-association",
            association_name=_ASSOCIATION,
            resource_uri=cluster.id,
            data_collection_rule_id=rule.id,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=cluster),
        )
        self.workspace = workspace.id
        self.register_outputs({"workspace": self.workspace})
