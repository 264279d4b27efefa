"""Logs of pods, including deleted ones, and audit logs of the control plane, in a Log Analytics workspace.

On GKE, Cloud Logging has both by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import monitor, operationalinsights

from ebbtide.declaration.model import Logs
from ebbtide.declaration.model.physical_names import WORKSPACE, fitting

from ..ownership import Labels

_STREAMS = ["Microsoft-ContainerLogV2", "Microsoft-KubeEvents", "Microsoft-KubePodInventory"]
"""Logs, events and inventory of pods: enough to trace a deleted pod. Metrics are not collected, since they
are billed."""

_EXTENSION = "ContainerInsightsExtension"
"""Name of the association; the agent accepts no other."""

_DESTINATION = "ciworkspace"


_AUDIT = ("kube-audit-admin", "guard")
"""Categories of the control plane's logs: requests that change something, and sign-ins with Entra ID. Reads
are only in `kube-audit`, which costs many times as much (azure-aks-docs, monitor-aks-reference, 2026)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStoreArgs:
    """Arguments of `LogStore`.

    Attributes:
        logs: the declared add-on.
        name: name of the cluster, part of the names of workspace and rule.
        resource_group: name of their resource group; they are deleted with it.
        location: region.
        labels: billing labels.
    """

    logs: Logs
    name: str
    resource_group: pulumi.Input[str]
    location: str
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])


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

    def __init__(self, name: str, args: LogStoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:LogStore", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        limit = args.logs.daily_gib
        called = fitting(f"{args.name}-logs", WORKSPACE)
        workspace = operationalinsights.Workspace(
            f"{name}-workspace",
            workspace_name=called,
            resource_group_name=args.resource_group,
            location=args.location,
            sku={"name": operationalinsights.WorkspaceSkuNameEnum.PER_GB2018},
            retention_in_days=args.logs.retention_days,
            workspace_capping={"daily_quota_gb": limit} if limit is not None else None,
            tags=dict(args.labels),
            opts=inside,
        )
        rule = monitor.DataCollectionRule(
            f"{name}-rule",
            data_collection_rule_name=called,
            resource_group_name=args.resource_group,
            location=args.location,
            kind="Linux",
            data_sources={
                "extensions": [
                    {
                        "name": _EXTENSION,
                        "extension_name": "ContainerInsights",
                        "streams": _STREAMS,
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
            destinations={"log_analytics": [{"name": _DESTINATION, "workspace_resource_id": workspace.id}]},
            data_flows=[{"streams": _STREAMS, "destinations": [_DESTINATION]}],
            tags=dict(args.labels),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCollectionArgs:
    """Arguments of `LogCollection`.

    Attributes:
        rule: resource id of the rule.
        workspace: resource id of the workspace.
        cluster: resource id of the cluster.
        deleted_with: the cluster, whose deletion deletes the association.
    """

    rule: pulumi.Input[str]
    workspace: pulumi.Input[str]
    cluster: pulumi.Input[str]
    deleted_with: pulumi.Resource | None = None


class LogCollection(pulumi.ComponentResource):
    """The association of a cluster with a data collection rule, and its diagnostic setting. Both depend on
    the cluster, and nothing depends on them."""

    def __init__(
        self, name: str, args: LogCollectionArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ebbtide:addons:LogCollection", name, {}, opts)
        monitor.DataCollectionRuleAssociation(
            f"{name}-association",
            association_name=_EXTENSION,
            resource_uri=args.cluster,
            data_collection_rule_id=args.rule,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=args.deleted_with),
        )
        monitor.DiagnosticSetting(
            f"{name}-audit",
            name="audit",
            resource_uri=args.cluster,
            workspace_id=args.workspace,
            log_analytics_destination_type="Dedicated",
            logs=[{"category": category, "enabled": True} for category in _AUDIT],
            # Azure keeps the setting of a deleted cluster and applies it to a new cluster of the same name
            # (azure-monitor docs, diagnostic-settings, 2026): so it gets its own deletion.
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
