"""The cluster: its control plane, the system pool that AKS creates with it, its maintenance, and its
kubeconfig."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Final, cast

import pulumi
import yaml
from pulumi_azure_native import authorization, containerservice

from ebbtide.declaration.model.cloud import DAYS, Aks, AksConsolidation, Maintenance
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.physical_names import DNS_PREFIX, fitting
from ebbtide.placement.derive import mounts_buckets

from ..inputs import overridden, overridden_item, without_none
from ..replacement import refusing_fixed
from ..topology import Labels, exec_kubeconfig, of_pool
from .identity import AKS_RBAC_CLUSTER_ADMIN, for_anyone, role_definition
from .ignored_changes import fingerprint, ignored_while
from .node_pool import POOLS, pool_inputs

_TYPE: Final = "azure-native:containerservice:ManagedCluster"

_SCHEDULES = ("aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule")
"""Names of AKS's maintenance configurations for Kubernetes versions and for node images."""

_SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""Azure Kubernetes Service AAD Server, Microsoft's own application, the same in every tenant (azure-aks-docs,
kubelogin-authentication, 2026)."""

PUBLIC_NAME = "none"
"""Value for the private DNS zone of a private cluster without one, which is reached by its public name."""

_INSTALL_HINT = "Install kubelogin: az aks install-cli, or https://azure.github.io/kubelogin/install.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArgs:
    """Arguments of a cluster.

    Attributes:
        declaration: the whole declaration; name, system pool, version, access and lifetime are read from it.
        resource_group: name of the cluster's resource group.
        subnet: resource id of the nodes' subnet; None for AKS's own.
        identity: resource id of the control plane's identity; None if `overrides` has it.
        labels: billing tags.
        addon_profiles: AKS's own add-ons, such as Container insights.
        reservation: as in `NodePoolArgs`, for the system pool.
        depends_on: the identity's grants.
    """

    declaration: Declaration
    cloud: Aks
    resource_group: pulumi.Input[str]
    subnet: pulumi.Input[str] | None
    identity: pulumi.Input[str] | None
    labels: Labels
    addon_profiles: Mapping[str, Mapping[str, pulumi.Input[object]]] = field(
        default_factory=dict[str, Mapping[str, pulumi.Input[object]]]
    )
    reservation: str | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()


class _Identity(containerservice.outputs.ManagedClusterIdentityResponse):
    """The cluster's identity as an output, whose user-assigned identities may also be a list.

    In the SDK they are a list as an input and a mapping as an output, and the SDK raises an AssertionError on
    the inputs that unit tests' mocks echo (pulumi-azure-native#2514, open since 2023-06; azure-native
    3.29.0).
    """

    @property
    @pulumi.getter(name="userAssignedIdentities")
    def user_assigned_identities(self) -> Any:
        return super().user_assigned_identities


class _ManagedCluster(containerservice.ManagedCluster):
    """The SDK's cluster with the corrected identity output."""

    @property
    @pulumi.getter
    def identity(self) -> pulumi.Output[_Identity | None]:
        return pulumi.get(self, "identity")  # pyright: ignore[reportUnknownMemberType] - untyped


class Cluster(pulumi.ComponentResource):
    """An AKS cluster with Entra ID as its only login: no local accounts, no run command.

    Its inline list of pools has only the system pool: AKS requires one at creation, and declaring it twice
    would give it two owners. A permanent cluster is protected against deletion, an ephemeral one is not.

    Administrators have the role Azure Kubernetes Service RBAC Cluster Admin on the cluster. Declared groups
    are also its admin groups: a Kubernetes binding is effective immediately, whereas a role assignment takes
    up to five minutes, and AKS checks both (azure-aks-docs, concepts-cluster-authorization, 2026-04;
    entra-id-authorization, 2026-08; issue #257 there). The role can be audited, permits fetching the
    kubeconfig, and can be assigned to a single user or service principal. Both follow from the same
    declaration. By default the deployer is the administrator, so that alternating deployers replace one
    another: declare a group then.

    Raises:
        ValueError: the declaration has no system pool.
    """

    resource: containerservice.ManagedCluster
    """The escape hatch: the provider's resource."""
    cluster_name: pulumi.Output[str]
    deployed_inputs: pulumi.Output[str]
    """Fingerprint of the cluster's inputs, known after deployment: the stack's output `aksClusterInputs`."""
    administrators: tuple[pulumi.Resource, ...]
    """The administrators' role assignments: prerequisites of everything inside the cluster."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        declaration, cloud = args.declaration, args.cloud
        pool = declaration.system_pool
        if pool is None:
            raise ValueError(f"{declaration.name} has no system pool, which an AKS cluster requires.")
        labels = of_pool(args.labels, pool.name)
        system = overridden_item(
            _TYPE,
            "agentPoolProfiles",
            pool_inputs(pool, subnet=args.subnet, reservation=args.reservation, labels=labels),
            pool.overrides,
        )
        super().__init__(
            "ebbtide:aks:Cluster",
            name,
            {
                **POOLS.of_pool(pool.name, system["mode"], system),
                **without_none(
                    {
                        "overrides": cloud.overrides or None,
                        "poolOverrides": pool.overrides or None,
                        "poolMachine": pool.declared_shape,
                    }
                ),
            },
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=POOLS.refusing())),
        )
        inputs = overridden(_TYPE, _inputs(args, {"name": pool.name, **system}), cloud.overrides)
        current = fingerprint(inputs)
        self.resource = _ManagedCluster(
            name,
            **inputs,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=not declaration.is_ephemeral,
                depends_on=args.depends_on,
                transforms=[ignored_while(current)],
                hooks=refusing_fixed(_TYPE),
            ),
        )
        self.deployed_inputs = pulumi.Output.all(self.resource.id, current).apply(lambda both: both[1])
        self.cluster_name = self.resource.name
        self.administrators = _administrators(name, cloud, self)
        self.register_outputs({"cluster_name": self.cluster_name})


def _inputs(args: ClusterArgs, pool: Mapping[str, Any]) -> dict[str, Any]:
    declaration, cloud = args.declaration, args.cloud
    return {
        "resource_name_": declaration.name,
        "resource_group_name": args.resource_group,
        "location": cloud.location,
        "sku": {"name": "Base", "tier": cloud.tier.capitalize()},
        # AKS enables and disables long-term support with the tier Premium only (azure-aks-docs,
        # free-standard-pricing-tiers, 2026-07-06). Sent for every tier: an omitted plan stays.
        "support_plan": "AKSLongTermSupport" if cloud.tier == "premium" else "KubernetesOfficial",
        # A prefix of host names: a cluster's name may contain an underscore, a host name may not.
        "dns_prefix": fitting(declaration.name.replace("_", "-"), DNS_PREFIX),
        "kubernetes_version": cloud.kubernetes_version,
        "auto_upgrade_profile": _upgrades(cloud),
        "identity": {
            "type": containerservice.ResourceIdentityType.USER_ASSIGNED,
            "user_assigned_identities": [args.identity] if args.identity is not None else [],
        },
        "enable_rbac": True,
        "aad_profile": {
            "managed": True,
            "enable_azure_rbac": True,
            "admin_group_object_ids": list(cloud.access.admins),
        },
        "disable_local_accounts": True,
        "api_server_access_profile": _access(cloud),
        "oidc_issuer_profile": {"enabled": True},
        "security_profile": _security(cloud),
        "disk_encryption_set_id": cloud.keys.disks,
        "network_profile": _network(cloud),
        "auto_scaler_profile": _autoscaler(declaration, cloud.consolidation),
        "storage_profile": _storage(declaration),
        "addon_profiles": _addon_profiles(args),
        # Sent even if it is disabled: an omitted profile leaves the old one in force.
        "azure_monitor_profile": {"metrics": {"enabled": declaration.addons.metrics is not None}},
        # Costs by namespace; not for the tier Free (azure-rest-api-specs, containerservice 2025-09-01,
        # ManagedClusterCostAnalysis).
        "metrics_profile": {"cost_analysis": {"enabled": cloud.tier != "free"}},
        "agent_pool_profiles": [dict(pool)],
        "tags": args.labels,
    }


def _security(cloud: Aks) -> containerservice.ManagedClusterSecurityProfileArgsDict:
    """Return the security profile: pods' identities, and the key that encrypts Secrets. A key vault without
    public access needs an API server in the virtual network (azure-aks-docs, use-kms-etcd-encryption,
    2025-12)."""
    profile: containerservice.ManagedClusterSecurityProfileArgsDict = {"workload_identity": {"enabled": True}}
    if cloud.keys.secrets is None:
        return profile
    key = cloud.keys.secrets
    return {
        **profile,
        "azure_key_vault_kms": {"enabled": True, "key_id": key, "key_vault_network_access": "Public"},
    }


def _access(cloud: Aks) -> containerservice.ManagedClusterAPIServerAccessProfileArgsDict:
    """Return the access profile of the API server. A private one without a private zone needs its public
    name, which resolves to the private address (azure-aks-docs, private-clusters, 2026-08)."""
    # `az aks command invoke` needs no network path to the API server: AKS runs the command in a pod, behind
    # the authorized ranges and in the network of a private cluster (MicrosoftDocs/SupportArticles-docs,
    # resolve-az-aks-command-invoke-failures.md, 2022-10).
    access: containerservice.ManagedClusterAPIServerAccessProfileArgsDict = {"disable_run_command": True}
    if cloud.access.private:
        zone = cloud.access.private_dns_zone
        return {
            **access,
            "enable_private_cluster": True,
            "private_dns_zone": zone,
            "enable_private_cluster_public_fqdn": zone == PUBLIC_NAME,
        }
    # Sent even if empty: an omitted list leaves the old one in force.
    return {**access, "authorized_ip_ranges": list(cloud.access.networks)}


def _autoscaler(
    declaration: Declaration, consolidation: AksConsolidation
) -> containerservice.ManagedClusterPropertiesAutoScalerProfileArgsDict:
    return {
        # Of several suitable pools, `least-waste` selects the one with the least idle capacity. `priority`,
        # for queues with a fallback, reads a ConfigMap in the cluster, and selects at random without it.
        "expander": "priority" if declaration.fallback_queues else "least-waste",
        # AKS's default is declared explicitly, since the idle cost depends on it.
        "scale_down_unneeded_time": f"{consolidation.delay_minutes}m",
        **_after_add(consolidation),
        # Otherwise a kube-system pod on a work node blocks its removal: AKS's default is `true`
        # (azure-aks-docs, cluster-autoscaler). Work pools are tainted, so only pods that tolerate everything
        # run there, and those that must not be evicted have a disruption budget.
        "skip_nodes_with_system_pods": "false",
        # DaemonSets run on every node, and are a large share of a small one.
        "ignore_daemonsets_utilization": True,
    }


def _after_add(
    consolidation: AksConsolidation,
) -> containerservice.ManagedClusterPropertiesAutoScalerProfileArgsDict:
    if consolidation.after_add_minutes is None:
        return {}
    return {"scale_down_delay_after_add": f"{consolidation.after_add_minutes}m"}


def _storage(declaration: Declaration) -> containerservice.ManagedClusterStorageProfileArgsDict:
    """Return the CSI drivers: AKS's defaults for disks and files; the one for buckets, a DaemonSet on every
    node, only if a team mounts one."""
    return {
        "disk_csi_driver": {"enabled": True},
        "file_csi_driver": {"enabled": True},
        "snapshot_controller": {"enabled": True},
        "blob_csi_driver": {"enabled": mounts_buckets(declaration)},
    }


def _addon_profiles(
    args: ClusterArgs,
) -> dict[str, pulumi.Input[containerservice.ManagedClusterAddonProfileArgs]] | None:
    if not args.addon_profiles:
        return None
    return cast(
        "dict[str, pulumi.Input[containerservice.ManagedClusterAddonProfileArgs]]", dict(args.addon_profiles)
    )


def _upgrades(cloud: Aks) -> containerservice.ManagedClusterAutoUpgradeProfileArgsDict:
    """Return the upgrade channels: the declared one for Kubernetes versions; for node images weekly, or never
    if the declared channel is `none`."""
    images = "None" if cloud.upgrade_channel == "none" else "NodeImage"
    return {"upgrade_channel": cloud.upgrade_channel, "node_os_upgrade_channel": images}


def _network(cloud: Aks) -> containerservice.ContainerServiceNetworkProfileArgsDict:
    """Azure CNI Overlay with Cilium, as in AKS Automatic; egress is through a Standard load balancer."""
    return {
        "network_plugin": "azure",
        "network_plugin_mode": "overlay",
        "network_dataplane": "cilium",
        "network_policy": "cilium",
        "pod_cidr": cloud.network.pods,
        "service_cidr": cloud.network.services,
        "dns_service_ip": _dns_address(cloud.network.services),
        "load_balancer_sku": "standard",
        "outbound_type": "loadBalancer",
    }


def _dns_address(services: str) -> str:
    """Return the tenth address of the services' range, as in AKS's default; in a smaller range, the last but
    one. Never the first, which is the API server's."""
    addresses = ip_network(services)
    return str(addresses[min(10, addresses.num_addresses - 2)])


def _administrators(name: str, cloud: Aks, cluster: Cluster) -> tuple[pulumi.Resource, ...]:
    """Return the role assignments of the declared groups or, by default, of the deployer, a user or a service
    principal."""
    role = role_definition(cloud.subscription, AKS_RBAC_CLUSTER_ADMIN)
    if not cloud.access.admins:
        deployer = authorization.RoleAssignment(
            f"{name}-deployer",
            scope=cluster.resource.id,
            role_definition_id=role,
            principal_id=_deployer(cluster),
            opts=pulumi.ResourceOptions(parent=cluster, transformations=[for_anyone]),
        )
        return (deployer,)
    return tuple(
        authorization.RoleAssignment(
            f"{name}-admin-{group}",
            scope=cluster.resource.id,
            role_definition_id=role,
            principal_id=group,
            principal_type="Group",
            opts=pulumi.ResourceOptions(parent=cluster),
        )
        for group in cloud.access.admins
    )


def _deployer(cluster: Cluster) -> pulumi.Output[str]:
    """Return the object id of the deployer: the user or service principal of its provider."""
    client = authorization.get_client_config_output(opts=pulumi.InvokeOutputOptions(parent=cluster))
    return client.apply(lambda config: config.object_id)


class MaintenanceSchedules(pulumi.ComponentResource):
    """The same window for upgrades of Kubernetes and of node images; the channels determine which upgrades
    there are (azure-aks-docs, planned-maintenance, 2025-12)."""

    def __init__(
        self,
        name: str,
        declared: Maintenance,
        cluster: Cluster,
        resource_group: pulumi.Input[str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("ebbtide:aks:MaintenanceSchedules", name, {}, opts)
        for schedule in _SCHEDULES:
            containerservice.MaintenanceConfiguration(
                f"{name}-{schedule}",
                config_name=schedule,
                resource_name_=cluster.cluster_name,
                resource_group_name=resource_group,
                maintenance_window=_window(declared),
                opts=pulumi.ResourceOptions(parent=self, deleted_with=cluster.resource),
            )
        self.register_outputs({})


def _window(declared: Maintenance) -> containerservice.MaintenanceWindowArgsDict:
    window = declared.window
    weekly = 0 < len(window.days) < len(DAYS)
    return {
        "start_time": window.start,
        "utc_offset": "+00:00",
        "duration_hours": int(window.duration.total_seconds()) // 3600,
        "schedule": {"weekly": {"day_of_week": window.days[0].capitalize(), "interval_weeks": 1}}
        if weekly
        else {"daily": {"interval_days": 1}},
        "not_allowed_dates": [
            {"start": exclusion.start.isoformat(), "end": exclusion.end.isoformat()}
            for exclusion in declared.exclusions
            if exclusion.end is not None
        ],
    }


class CredentialsError(ValueError):
    """The response of the credentials call is not a kubeconfig; the message names the missing part, without
    content."""


def _encoded(credentials: containerservice.ListManagedClusterUserCredentialsResult) -> str:
    """Return the first kubeconfig of the credentials call.

    Raises:
        CredentialsError: there is none.
    """
    if not credentials.kubeconfigs:
        raise CredentialsError(
            "AKS returned no kubeconfig for this cluster. Check `az aks get-credentials --file -`. In a "
            "unit test, return one from the mocks for "
            "azure-native:containerservice:listManagedClusterUserCredentials."
        )
    return credentials.kubeconfigs[0].value


def server_and_authority(encoded: str) -> tuple[str, str]:
    """Return the URL of the API server and its certificate authority.

    Its user is not used: it signs in through a browser, which a CI job does not have.

    Args:
        encoded: a kubeconfig, YAML in base64, as `listClusterUserCredential` returns it.

    Returns:
        The server's URL, and its authority's certificate in base64.

    Raises:
        CredentialsError: it is not a kubeconfig, or has no server.
    """
    try:
        # The C loader is ten times as fast, and is part of PyYAML's wheels.
        kubeconfig: Any = yaml.load(base64.b64decode(encoded), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        cluster = kubeconfig["clusters"][0]["cluster"]
        return str(cluster["server"]), str(cluster["certificate-authority-data"])
    except (binascii.Error, yaml.YAMLError, TypeError, LookupError):
        raise CredentialsError(
            "AKS returned a kubeconfig without a server and its certificate authority. Check `az aks "
            "get-credentials --file -` for this cluster."
        ) from None


def kubeconfig_text(cluster: str, server: str, authority: str, login: str) -> str:
    """Build a kubeconfig, as JSON, whose user gets tokens from kubelogin.

    Args:
        cluster: name of cluster, user and context.
        server: URL of the API server.
        authority: certificate of its authority, in base64.
        login: kubelogin's source of tokens: `azurecli` or `workloadidentity`.
    """
    return exec_kubeconfig(
        cluster,
        {"server": server, "certificate-authority-data": authority},
        {
            "command": "kubelogin",
            "args": [
                "get-token",
                *("--login", login),
                *("--server-id", _SERVER),
                *("--environment", "AzurePublicCloud"),
            ],
            "installHint": _INSTALL_HINT,
            "provideClusterInfo": False,
        },
    )


def kubeconfig(
    cluster: pulumi.Input[str],
    resource_group: pulumi.Input[str],
    login: str,
    *,
    zone: str | None = None,
    opts: pulumi.InvokeOutputOptions,
) -> pulumi.Output[str]:
    """Return the kubeconfig of a cluster, a secret, with server and authority from the credentials call.

    Args:
        cluster: name of the cluster.
        resource_group: name of the cluster's resource group.
        login: kubelogin's source of tokens.
        zone: private DNS zone of a private cluster that the stack created.
        opts: options of the credentials call; it depends on the cluster if the stack created it.
    """
    credentials = containerservice.list_managed_cluster_user_credentials_output(
        resource_group_name=resource_group,
        resource_name=cluster,
        server_fqdn="public" if zone == PUBLIC_NAME else None,
        opts=opts,
    )

    def text(of: list[Any]) -> str:
        name, encoded = of
        return kubeconfig_text(name, *server_and_authority(encoded), login)

    encoded = credentials.apply(_encoded)
    return pulumi.Output.secret(pulumi.Output.all(cluster, encoded).apply(text))
