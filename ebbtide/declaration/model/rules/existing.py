"""Fields that are rejected for an existing cluster, since Ebbtide does not configure it."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import assert_never

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.catalog.clouds import account_host
from ebbtide.declaration.model.base import Declared
from ebbtide.declaration.model.cloud import Aks, Cloud, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule, pools_of
from ebbtide.text import and_list


@dataclass(frozen=True, slots=True)
class ClusterSetting:
    """A field of the cloud that is set when a cluster is created; `attribute` is its path in the model."""

    cloud: CloudKind
    field: str
    attribute: str
    settled: str


_CHANNEL = "by its release channel"
_ACCESS = "by its own settings"
_RANGE = "by its network"

ROWS: tuple[ClusterSetting, ...] = (
    ClusterSetting(CloudKind.GKE, "releaseChannel", "release_channel", _CHANNEL),
    ClusterSetting(CloudKind.GKE, "access.networks", "access.networks", _ACCESS),
    ClusterSetting(CloudKind.GKE, "access.private", "access.private", _ACCESS),
    ClusterSetting(CloudKind.GKE, "maintenance", "maintenance", _ACCESS),
    ClusterSetting(CloudKind.GKE, "consolidation.profile", "consolidation.profile", _ACCESS),
    ClusterSetting(CloudKind.GKE, "keys.secrets", "keys.secrets", _ACCESS),
    ClusterSetting(CloudKind.GKE, "network.nodes", "network.nodes", _RANGE),
    ClusterSetting(CloudKind.GKE, "network.pods", "network.pods", _RANGE),
    ClusterSetting(CloudKind.GKE, "network.services", "network.services", _RANGE),
    ClusterSetting(CloudKind.GKE, "overrides", "overrides", _ACCESS),
    ClusterSetting(CloudKind.AKS, "overrides", "overrides", _ACCESS),
    ClusterSetting(CloudKind.AKS, "tier", "tier", _ACCESS),
    ClusterSetting(CloudKind.AKS, "upgradeChannel", "upgrade_channel", _ACCESS),
    ClusterSetting(CloudKind.AKS, "access.admins", "access.admins", _ACCESS),
    ClusterSetting(CloudKind.AKS, "access.networks", "access.networks", _ACCESS),
    ClusterSetting(CloudKind.AKS, "access.private", "access.private", _ACCESS),
    ClusterSetting(CloudKind.AKS, "access.privateDnsZone", "access.private_dns_zone", _ACCESS),
    ClusterSetting(CloudKind.AKS, "maintenance", "maintenance", _ACCESS),
    ClusterSetting(CloudKind.AKS, "consolidation.delayMinutes", "consolidation.delay_minutes", _ACCESS),
    ClusterSetting(
        CloudKind.AKS, "consolidation.afterAddMinutes", "consolidation.after_add_minutes", _ACCESS
    ),
    ClusterSetting(CloudKind.AKS, "keys.secrets", "keys.secrets", _ACCESS),
    ClusterSetting(CloudKind.AKS, "keys.vault", "keys.vault", _ACCESS),
    ClusterSetting(CloudKind.AKS, "keys.disks", "keys.disks", _ACCESS),
    ClusterSetting(CloudKind.AKS, "network.nodes", "network.nodes", _RANGE),
    ClusterSetting(CloudKind.AKS, "network.pods", "network.pods", _RANGE),
    ClusterSetting(CloudKind.AKS, "network.services", "network.services", _RANGE),
)


def _as_left_out(cluster: Cluster, attribute: str) -> object:
    """Return the default of the field."""
    *parents, last = attribute.split(".")
    part: Declared = attrgetter(".".join(parents))(cluster.cloud) if parents else cluster.cloud
    return type(part).model_fields[last].get_default(call_default_factory=True)


@cluster_rule(
    "existing cluster not reconfigured",
    "pulumi-gcp 10.2.0, container.Cluster; azure-native 3.29.0, ManagedCluster: neither is made",
)
def _made_with(cluster: Cluster) -> Iterator[Fault]:
    existing = cluster.cloud.existing
    if existing is None:
        return
    for row in ROWS:
        if row.cloud is not cluster.site.cloud:
            continue
        if attrgetter(row.attribute)(cluster.cloud) != _as_left_out(cluster, row.attribute):
            yield Fault(
                f"cloud.{row.field}",
                f"The cluster {existing.name} already exists, and {row.field} is configured by the "
                "cluster's owner.",
                f"The field would have no effect: the value is set {row.settled}.",
                f"Remove {row.field}, or remove existing to create a new cluster.",
            )


@cluster_rule(
    "service account on existing cluster",
    "GKE docs, hardening (2026): least privilege for nodes; components/gke/identity.py",
    CloudKind.GKE,
    Severity.WARNED,
)
def _service_account(cluster: Cluster) -> Iterator[Fault]:
    """GKE uses the project's default account, and the nodes' access scope restricts none of its rights."""
    cloud = cluster.cloud
    pools = [pool for pool in pools_of(cluster) if pool.pool.service_account is None]
    if not isinstance(cloud, Gke) or cloud.existing is None or not pools:
        return
    names = and_list([pool.pool.name for pool in pools])
    has = "has" if len(pools) == 1 else "have"
    email = f"gke-nodes@{account_host(cloud.project)}"
    yield Fault(
        pools[0].at("serviceAccount"),
        f"{names} {has} no serviceAccount, and Ebbtide creates none for an existing cluster.",
        "The nodes run as the Compute Engine default service account of the project, which often has the "
        "role Editor on the project.",
        "Create an account with `gcloud iam service-accounts create gke-nodes --project "
        f"{cloud.project}`, grant it its role with `gcloud projects add-iam-policy-binding {cloud.project} "
        f"--member serviceAccount:{email} --role roles/container.defaultNodeServiceAccount`, and write "
        f"serviceAccount: {email}. Grant roles/artifactregistry.reader, too, for images of the project.",
    )


@cluster_rule(
    "network policies on existing cluster",
    "GKE docs, network-policy, and azure-aks-docs, use-network-policies (2026)",
    severity=Severity.WARNED,
)
def _network_policies(cluster: Cluster) -> Iterator[Fault]:
    """Every API server accepts a NetworkPolicy, but a cluster enforces it only with a policy engine."""
    existing = cluster.cloud.existing
    created = any(team.creates_namespace for team in cluster.teams)
    needed = created or any(add_on.spec.namespace for add_on in cluster.installed)
    if existing is None or not needed:
        return
    yield Fault(
        "cloud.existing",
        f"Network policy enforcement on {existing.name} is configured by the cluster's owner.",
        "Without it, pods of any namespace can reach the teams' pods, and the add-ons' APIs without "
        "authentication.",
        _how_to_look(cluster.cloud, existing.name),
    )


def _how_to_look(cloud: Cloud, name: str) -> str:
    match cloud:
        case Gke():
            command = (
                f"gcloud container clusters describe {name} --project {cloud.project} --location "
                f"{cloud.location} --format 'value(networkConfig.datapathProvider,networkPolicy.enabled)'"
            )
            expected, engine = "ADVANCED_DATAPATH or True", "network policy enforcement"
        case Aks():
            group = cloud.resource_group or name
            command = f"az aks show --name {name} --resource-group {group} --query networkProfile"
            expected, engine = "a networkPolicy of cilium, azure or calico", "one of them"
        case _:
            assert_never(cloud)
    return f"Run `{command}`: unless it prints {expected}, have its owner enable {engine}."
