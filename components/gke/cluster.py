"""The cluster: its control plane, without nodes."""

from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_gcp import container

from ebbtide.declaration.model import Cluster as Declaration
from ebbtide.declaration.model import Gke
from ebbtide.declaration.model.members import groups_domain

from ..overrides import overridden, without_none
from ..ownership import billing_labels
from .maintenance import maintenance_policy
from .network import Network

_TYPE: Final = "gcp:container/cluster:Cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArgs:
    """Arguments of a cluster.

    Attributes:
        declaration: the whole declaration; name, channel, version, access, owner and lifetime are read from
            it.
        cloud: its cloud.
        network: its network.
        node_account: e-mail of the nodes' service account, for the short-lived default pool.
        expires: time of expiry; None for a permanent cluster.
        depends_on: grants on the keys that encrypt Secrets and the default pool's disk.
    """

    declaration: Declaration
    cloud: Gke
    network: Network
    node_account: pulumi.Input[str]
    expires: pulumi.Output[str] | None = None
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
            "ebbtide:gke:Cluster", name, without_none({"overrides": cloud.overrides or None}), opts
        )
        self.resource = container.Cluster(
            name,
            **overridden(_TYPE, _inputs(args), cloud.overrides),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.depends_on,
                # GKE's own deletion protection comes too late: when GKE refuses, the engine has already
                # dropped every pool that is deleted with the cluster from its state. This one refuses before
                # any change.
                protect=not declaration.is_ephemeral,
                # None of these must replace the cluster: settings of the default pool, which no longer exists
                # at the first update, and the description, which earlier versions derived from the owner.
                ignore_changes=["nodeConfig", "initialNodeCount", *_derived("description", cloud)],
            ),
        )
        self.cluster_name = self.resource.name
        self.register_outputs({"cluster_name": self.cluster_name})


def _derived(name: str, cloud: Gke) -> list[str]:
    """Return an input's name unless it is overridden."""
    return [] if name in cloud.overrides else [name]


def _inputs(args: ClusterArgs) -> dict[str, Any]:
    declaration, cloud = args.declaration, args.cloud
    return {
        "name": declaration.name,
        "project": cloud.project,
        "location": cloud.location,
        "description": "Ebbtide cluster",
        "release_channel": {"channel": cloud.release_channel.upper()},
        "min_master_version": cloud.kubernetes_version,
        "network": args.network.vpc,
        "subnetwork": args.network.subnet,
        "networking_mode": "VPC_NATIVE",
        "ip_allocation_policy": {
            "cluster_secondary_range_name": args.network.pods_range,
            "services_secondary_range_name": args.network.services_range,
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
        "resource_labels": billing_labels(declaration, args.expires),
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
