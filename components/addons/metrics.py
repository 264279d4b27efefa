"""Metrics of an AKS cluster in an Azure Monitor workspace.

On GKE, managed Prometheus is a setting of the cluster, and Cloud Monitoring needs no store.
"""

from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import monitor

from ebbtide.declaration.model.physical_names import DATA_COLLECTION, MONITOR_WORKSPACE, fitting

from ..ownership import Labels

_STREAMS = ["Microsoft-PrometheusMetrics"]
_ASSOCIATION = "ContainerInsightsMetricsExtension"
_DESTINATION = "MonitoringAccount1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricStoreArgs:
    """Arguments of `MetricStore`.

    Attributes:
        name: name of the cluster, part of the names of workspace, endpoint and rule.
        resource_group: name of their resource group; they are deleted with it.
        location: region.
        cluster: resource id of the cluster.
        deleted_with: the cluster, whose deletion deletes the association.
        labels: billing labels.
    """

    name: str
    resource_group: pulumi.Input[str]
    location: str
    cluster: pulumi.Input[str]
    deleted_with: pulumi.Resource | None = None
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])


class MetricStore(pulumi.ComponentResource):
    """An Azure Monitor workspace, and the data collection rule that sends a cluster's metrics to it.

    The cluster's `azureMonitorProfile` runs the agent, with an identity that the association admits. Samples
    are kept for 18 months. Sources: azure-monitor docs, kubernetes-monitoring-enable (2026); Azure/ARO-HCP,
    dev-infrastructure/modules/metrics/datacollection.bicep (2026); azure-native 3.29.
    """

    workspace: pulumi.Output[str]
    """Resource id of the workspace."""

    def __init__(self, name: str, args: MetricStoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:MetricStore", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        collection = fitting(f"{args.name}-metrics", DATA_COLLECTION)
        workspace = monitor.AzureMonitorWorkspace(
            f"{name}-workspace",
            azure_monitor_workspace_name=fitting(f"{args.name}-metrics", MONITOR_WORKSPACE),
            resource_group_name=args.resource_group,
            location=args.location,
            tags=dict(args.labels),
            opts=inside,
        )
        endpoint = monitor.DataCollectionEndpoint(
            f"{name}-endpoint",
            data_collection_endpoint_name=collection,
            resource_group_name=args.resource_group,
            location=args.location,
            kind="Linux",
            tags=dict(args.labels),
            opts=inside,
        )
        rule = monitor.DataCollectionRule(
            f"{name}-rule",
            data_collection_rule_name=collection,
            resource_group_name=args.resource_group,
            location=args.location,
            kind="Linux",
            data_collection_endpoint_id=endpoint.id,
            data_sources={"prometheus_forwarder": [{"name": "PrometheusDataSource", "streams": _STREAMS}]},
            destinations={
                "monitoring_accounts": [{"name": _DESTINATION, "account_resource_id": workspace.id}]
            },
            data_flows=[{"streams": _STREAMS, "destinations": [_DESTINATION]}],
            tags=dict(args.labels),
            opts=inside,
        )
        monitor.DataCollectionRuleAssociation(
            f"{name}-association",
            association_name=_ASSOCIATION,
            resource_uri=args.cluster,
            data_collection_rule_id=rule.id,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=args.deleted_with),
        )
        self.workspace = workspace.id
        self.register_outputs({"workspace": self.workspace})
