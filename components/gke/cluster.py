"""The cluster: its control plane, without nodes; its maintenance, and its kubeconfig without credentials."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import pulumi
from pulumi_gcp import container

from ebbtide.declaration.model.cloud import DAYS, Gke, Maintenance, MaintenanceExclusion
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.tenancy import groups_domain

from ..inputs import overridden
from ..topology import Labels, exec_kubeconfig
from .network import Network

_TYPE: Final = "gcp:container/cluster:Cluster"

_MONDAY = date(2024, 1, 1)
"""A fixed past date from which windows recur: with the current date, every update would change the policy."""

_INSTALL_HINT = "Install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArgs:
    """Arguments of a cluster.

    Attributes:
        declaration: the whole declaration; name, channel, version, access and lifetime are read from it.
        node_account: e-mail of the nodes' service account, for the short-lived default pool.
        labels: billing labels.
        depends_on: grants on the keys that encrypt Secrets and the default pool's disk.
    """

    declaration: Declaration
    cloud: Gke
    network: Network
    node_account: pulumi.Input[str]
    labels: Labels
    depends_on: tuple[pulumi.Resource, ...] = ()


class Cluster(pulumi.ComponentResource):
    """A private, VPC-native GKE cluster, reachable only through the DNS endpoint with IAM and from declared
    networks.

    Its default pool is removed, since a cluster's inline pool cannot be changed without the cluster. By
    default, autoscaling removes nodes early (OPTIMIZE_UTILIZATION). A permanent cluster is protected against
    deletion, an ephemeral one is not. Sources: GKE docs, hardening and dns-endpoint (2026); pulumi-gcp
    10.2.0.
    """

    resource: container.Cluster
    """The escape hatch: the provider's resource."""
    cluster_name: pulumi.Output[str]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        declaration, cloud = args.declaration, args.cloud
        super().__init__(
            "ebbtide:gke:Cluster", name, {"overrides": cloud.overrides} if cloud.overrides else {}, opts
        )
        inputs = _inputs(args)
        self.resource = container.Cluster(
            name,
            **overridden(_TYPE, inputs, cloud.overrides),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.depends_on,
                # GKE's own deletion protection comes too late: when GKE refuses, the engine has already
                # dropped every pool that is deleted with the cluster from its state. This one refuses before
                # any change.
                protect=not declaration.is_ephemeral,
                # None of these must replace the cluster: settings of the default pool, which no longer exists
                # at the first update, and the description, which earlier versions derived from the owner. And
                # an adopted cluster keeps its pool `default-pool`, which the provider deletes on a change of
                # `removeDefaultNodePool` (terraform-provider-google, resourceContainerClusterUpdate).
                ignore_changes=[
                    "nodeConfig",
                    "initialNodeCount",
                    "removeDefaultNodePool",
                    *_derived("description", cloud),
                    # A cluster keeps multi-networking when its last pool with GPUDirect is removed: the
                    # engine updates the cluster before it deletes that pool, which needs it.
                    *([] if declaration.gpu_networks else _derived("enableMultiNetworking", cloud)),
                ],
            ),
        )
        self.cluster_name = self.resource.name
        self.register_outputs({"cluster_name": self.cluster_name})


def _derived(name: str, cloud: Gke) -> list[str]:
    """Return an input's name unless it is overridden."""
    return [] if name in cloud.overrides else [name]


def _inputs(args: ClusterArgs) -> dict[str, Any]:
    declaration, cloud, services = args.declaration, args.cloud, args.network.services_range
    return {
        "name": declaration.name,
        "project": cloud.project,
        "location": cloud.location,
        "description": "Ebbtide cluster",
        "release_channel": {"channel": cloud.release_channel.upper().replace("NONE", "UNSPECIFIED")},
        "min_master_version": cloud.kubernetes_version,
        "network": args.network.vpc,
        "subnetwork": args.network.subnet,
        "networking_mode": "VPC_NATIVE",
        "ip_allocation_policy": {
            "cluster_secondary_range_name": args.network.pods_range,
            **({"services_secondary_range_name": services} if services is not None else {}),
        },
        "private_cluster_config": {
            "enable_private_nodes": True,
            **({"enable_private_endpoint": True} if cloud.access.private else {}),
        },
        "control_plane_endpoints_config": {
            "dns_endpoint_config": {"allow_external_traffic": not cloud.access.private},
            "ip_endpoints_config": {"enabled": cloud.access.private or bool(cloud.access.networks)},
        },
        "master_authorized_networks_config": _authorized(cloud),
        "authenticator_groups_config": _groups(declaration),
        "maintenance_policy": maintenance_policy(cloud.maintenance) if cloud.maintenance else None,
        "database_encryption": _secrets(cloud),
        "datapath_provider": "ADVANCED_DATAPATH",
        "enable_multi_networking": True if declaration.gpu_networks else None,
        "enable_shielded_nodes": True,
        # `system:authenticated` includes everyone with a Google account (GKE docs, rbac best practices,
        # 2026).
        "rbac_binding_config": {
            "enable_insecure_binding_system_authenticated": False,
            "enable_insecure_binding_system_unauthenticated": False,
        },
        "workload_identity_config": {"workload_pool": f"{cloud.project}.svc.id.goog"},
        "cluster_autoscaling": {
            "enabled": False,
            "autoscaling_profile": cloud.consolidation.profile.replace("-", "_").upper(),
        },
        "addons_config": {
            "gcs_fuse_csi_driver_config": {"enabled": True},
            "gce_persistent_disk_csi_driver_config": {"enabled": True},
        },
        # Costs by namespace in the export of billing data to BigQuery (googleapis, google/container/v1beta1/
        # cluster_service.proto, CostManagementConfig, 2026).
        "cost_management_config": {"enabled": True},
        "logging_config": {"enable_components": ["SYSTEM_COMPONENTS", "WORKLOADS"]},
        "monitoring_config": _monitoring(declaration),
        "remove_default_node_pool": True,
        "initial_node_count": 1,
        "node_config": _default_pool(args),
        "deletion_protection": not declaration.is_ephemeral,
        "resource_labels": args.labels,
    }


def _monitoring(declaration: Declaration) -> container.ClusterMonitoringConfigArgsDict:
    """Return the monitoring of a cluster. Managed Prometheus, which runs collectors on every node and is
    billed by the sample, only if it is declared; GKE's DCGM exporter sends to it (GKE docs, dcgm-metrics,
    2026)."""
    exporter = ["DCGM"] if declaration.measured_pools else []
    return {
        "enable_components": ["SYSTEM_COMPONENTS", *exporter],
        "managed_prometheus": {"enabled": declaration.addons.metrics is not None},
    }


def _authorized(cloud: Gke) -> container.ClusterMasterAuthorizedNetworksConfigArgsDict | None:
    """Return the networks that may reach the IP endpoint. For a private endpoint the list is sent empty,
    which admits only the cluster's own subnet, instead of any connected network."""
    if not cloud.access.networks and not cloud.access.private:
        return None
    return {"cidr_blocks": [{"cidr_block": block, "display_name": block} for block in cloud.access.networks]}


def _secrets(cloud: Gke) -> container.ClusterDatabaseEncryptionArgsDict | None:
    if cloud.keys.secrets is None:
        return None
    return {"state": "ENCRYPTED", "key_name": cloud.keys.secrets}


def _groups(declaration: Declaration) -> container.ClusterAuthenticatorGroupsConfigArgsDict | None:
    """Return the security group of Google Groups for RBAC, if a member is a group. GKE prescribes its
    name; the domain's administrator creates it and adds the members' groups (GKE docs, google-groups-rbac,
    2026)."""
    domain = groups_domain(declaration.members)
    return {"security_group": f"gke-security-groups@{domain}"} if domain else None


def _default_pool(args: ClusterArgs) -> container.ClusterNodeConfigArgsDict:
    """Return the default pool, which GKE requires at creation and which is removed immediately: as small and
    secure as possible."""
    pool: container.ClusterNodeConfigArgsDict = {
        "machine_type": "e2-small",
        "disk_size_gb": 20,
        "service_account": args.node_account,
        "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
    }
    if args.cloud.network_tags:
        pool["tags"] = list(args.cloud.network_tags)
    if args.cloud.keys.disks:
        pool["boot_disk_kms_key"] = args.cloud.keys.disks
    return pool


def maintenance_policy(declared: Maintenance) -> container.ClusterMaintenancePolicyArgsDict:
    """Return the policy of a cluster: one window, and its exclusions."""
    window = declared.window
    days = [day for day in DAYS if day in window.days]
    first = _MONDAY + timedelta(days=DAYS.index(days[0]) if days else 0)
    start = datetime.combine(first, time.fromisoformat(window.start), UTC)
    listed = ",".join(day[:2].upper() for day in days)
    return {
        "recurring_window": {
            "start_time": _text(start),
            "end_time": _text(start + window.duration),
            "recurrence": f"FREQ=WEEKLY;BYDAY={listed}" if days else "FREQ=DAILY",
        },
        "maintenance_exclusions": [_exclusion(exclusion) for exclusion in declared.exclusions],
    }


def _exclusion(
    exclusion: MaintenanceExclusion,
) -> container.ClusterMaintenancePolicyMaintenanceExclusionArgsDict:
    scope = exclusion.scope.replace("-", "_").upper()
    found: container.ClusterMaintenancePolicyMaintenanceExclusionArgsDict = {
        "exclusion_name": exclusion.name,
        "start_time": _text(datetime.combine(exclusion.start, time(), UTC)),
    }
    if exclusion.end is None:
        return {
            **found,
            "exclusion_options": {"scope": scope, "end_time_behavior": "UNTIL_END_OF_SUPPORT"},
        }
    after = exclusion.end + timedelta(days=1)
    end = _text(datetime.combine(after, time(), UTC))
    return {**found, "end_time": end, "exclusion_options": {"scope": scope}}


def _text(moment: datetime) -> str:
    """Format a time as RFC 3339 with `Z`; GKE returns any other form differently, so every update would show
    a change."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def kubeconfig_text(cluster: str, server: str, ca_certificate: str | None) -> str:
    """Build a kubeconfig, as JSON, whose user gets tokens from gke-gcloud-auth-plugin.

    Args:
        cluster: name of cluster, user and context.
        server: host of the control plane: its DNS endpoint, or its address.
        ca_certificate: in base64; None for the DNS endpoint, whose certificate is public.
    """
    authority = {"certificate-authority-data": ca_certificate} if ca_certificate else {}
    return exec_kubeconfig(
        cluster,
        {"server": f"https://{server}", **authority},
        {
            "command": "gke-gcloud-auth-plugin",
            "installHint": _INSTALL_HINT,
            "provideClusterInfo": True,
        },
    )


def _dns_host(config: container.outputs.ClusterControlPlaneEndpointsConfig) -> str:
    """Return the host of the DNS endpoint, which every cluster has (GKE docs, dns-endpoint, 2026)."""
    endpoint = config.dns_endpoint_config
    return (endpoint.endpoint if endpoint else None) or ""


def own_kubeconfig(cluster: Cluster, *, private: bool) -> pulumi.Output[str]:
    """Return the kubeconfig of a created cluster, a secret: through the DNS endpoint with IAM or, if it is
    private, through its address in the cluster's network."""
    resource = cluster.resource
    if private:
        host: pulumi.Output[str] = resource.endpoint
        authority = resource.master_auth.apply(lambda auth: auth.cluster_ca_certificate)
    else:
        host = resource.control_plane_endpoints_config.apply(_dns_host)
        authority = pulumi.Output.from_input(None)
    reached = pulumi.Output.all(cluster.cluster_name, host, authority)
    return pulumi.Output.secret(reached.apply(lambda of: kubeconfig_text(*of)))


def existing_kubeconfig(cloud: Gke, name: str) -> pulumi.Output[str]:
    """Return the kubeconfig of an existing cluster, a secret.

    It uses the DNS endpoint if that is public, otherwise the address and certificate.
    """

    def text(cluster: container.GetClusterResult) -> str:
        for config in cluster.control_plane_endpoints_configs:
            for dns in config.dns_endpoint_configs:
                if dns.endpoint and dns.allow_external_traffic:
                    return kubeconfig_text(name, dns.endpoint, None)
        return kubeconfig_text(name, cluster.endpoint, cluster.master_auths[0].cluster_ca_certificate)

    existing = container.get_cluster_output(name=name, location=cloud.location, project=cloud.project)
    return pulumi.Output.secret(existing.apply(text))
