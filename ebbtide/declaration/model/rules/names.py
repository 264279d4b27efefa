"""Syntax of names and ids in each cloud."""

import re
from collections.abc import Callable, Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.capacity import Reservation
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.physical_names import AZURE_RESERVED
from ebbtide.declaration.model.rules.rule import ClusterRule, PoolIn, PoolRule, Severity, cluster_rule
from ebbtide.declaration.model.rules.syntax import Syntax, Texts, cluster_rules, pool_rules

_RFC1035_40 = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"
_RFC1035_63 = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_RFC1035_40_WORDS = (
    "at most 40 lower-case letters, digits and hyphens, starting with a letter and not ending with a hyphen"
)
_GUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_GUID_EXAMPLE = "11111111-2222-3333-4444-555555555555"
_GUID_WORDS = "a GUID"
_AKS_NAME = r"[A-Za-z0-9]([-_A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_AKS_NAME_WORDS = (
    "at most 63 letters, digits, underscores and hyphens, starting and ending with a letter or a digit"
)
_NO_CLUSTER = "The cluster could not be created."
_NO_SUCH_CLUSTER = "No cluster can have that name."
_NO_POOL = "The node pool could not be created."
_GKE_NAMES = (
    "gcloud CLI 556.0.0, GKE v1 API discovery: Cluster.name; pulumi/pulumi-gcp#1510 (2024-01): pool names"
)
_AZURE_NAMES = "MicrosoftDocs/azure-docs resource-name-rules.md (2020-02-11)"


def _gke(field: Callable[[Gke], Texts]) -> Callable[[Cluster], Texts]:
    return lambda cluster: field(cluster.cloud) if isinstance(cluster.cloud, Gke) else ()


def _aks(field: Callable[[Aks], Texts]) -> Callable[[Cluster], Texts]:
    return lambda cluster: field(cluster.cloud) if isinstance(cluster.cloud, Aks) else ()


def _cluster_names(cluster: Cluster) -> Texts:
    yield "name", cluster.name
    if cluster.cloud.existing:
        yield "cloud.existing.name", cluster.cloud.existing.name


def _admins(cloud: Aks) -> Texts:
    for index, admin in enumerate(cloud.access.admins):
        yield f"cloud.access.admins[{index}]", admin


def _reservation(pool: PoolIn) -> Texts:
    if isinstance(pool.pool.capacity, Reservation) and pool.pool.capacity.name:
        yield pool.at("capacity.name"), pool.pool.capacity.name


_NOT_IN_PROJECT_IDS = "google|null|undefined|ssl"
_NETWORK_TAG = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_NETWORK_TAG_WORDS = (
    "at most 63 lower-case letters, digits and hyphens, starting with a letter and not ending with a hyphen"
)
_NETWORK_TAG_SOURCE = "cloud.google.com/vpc/docs/add-remove-network-tags (2026-11)"

CLUSTER_RULES: tuple[ClusterRule, ...] = cluster_rules(
    Syntax(
        what="network tag of all nodes",
        whose="Compute Engine",
        pattern=_NETWORK_TAG,
        wants=_NETWORK_TAG_WORDS,
        example="allow-ssh",
        consequence=_NO_POOL,
        source=_NETWORK_TAG_SOURCE,
        texts=lambda cluster: [
            (f"cloud.networkTags[{index}]", tag)
            for index, tag in enumerate(cluster.cloud.network_tags if isinstance(cluster.cloud, Gke) else ())
        ],
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="cluster name",
        whose="GKE",
        pattern=_RFC1035_40,
        wants=_RFC1035_40_WORDS,
        example="train-dev",
        consequence=_NO_SUCH_CLUSTER,
        source=_GKE_NAMES,
        texts=_cluster_names,
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="project id",
        whose="Google Cloud",
        pattern=rf"([a-z0-9.-]+:)?(?!.*({_NOT_IN_PROJECT_IDS}))[a-z][-a-z0-9]{{4,28}}[a-z0-9]",
        wants="6 to 30 lower-case letters, digits and hyphens, starting with a letter and not ending with a "
        f"hyphen, without the words {_NOT_IN_PROJECT_IDS.replace('|', ', ')}",
        example="acme-ml",
        consequence="Every call to the cloud would fail.",
        source="gcloud CLI 556.0.0, Resource Manager v1 API discovery: projectId; Resource Manager docs, "
        "creating-managing-projects, as firestore-path 0.5.0 quotes it (2026-11): words",
        texts=_gke(lambda cloud: [("cloud.project", cloud.project)]),
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="label value",
        whose="Google Cloud",
        pattern=r"(?!.*[A-Z])[\w-]{1,63}",
        wants="at most 63 lower-case letters, digits, underscores and hyphens",
        example="vision-team",
        consequence="The billing label of the owner could not be set.",
        source="gcloud CLI 556.0.0, util/args/labels_util.py: letters of any script (2026-02-10)",
        texts=lambda cluster: [("owner", cluster.owner)],
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="version",
        whose="GKE",
        pattern=r"latest|-|\d+\.\d+(\.\d+(-gke\.\d+)?)?",
        wants="a version of Kubernetes or of GKE, latest, or - for GKE's default",
        example="1.33 or 1.33.5-gke.1080000",
        consequence=_NO_CLUSTER,
        source="gcloud CLI 556.0.0, GKE v1 API discovery: initialClusterVersion",
        texts=_gke(lambda cloud: [("cloud.kubernetesVersion", cloud.kubernetes_version)]),
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="cluster name",
        whose="AKS",
        pattern=_AKS_NAME,
        wants=_AKS_NAME_WORDS,
        example="train-dev",
        consequence=_NO_SUCH_CLUSTER,
        source=_AZURE_NAMES,
        texts=_cluster_names,
        cloud=CloudKind.AKS,
    ),
    Syntax(
        what="tag value",
        whose="Azure",
        pattern=r".{1,256}",
        wants="at most 256 characters in one line",
        example="vision-team",
        consequence="The billing label of the owner could not be set.",
        source="MicrosoftDocs/azure-docs tag-resources.md (2022-03-15)",
        texts=lambda cluster: [("owner", cluster.owner)],
        cloud=CloudKind.AKS,
    ),
    Syntax(
        what="version",
        whose="AKS",
        pattern=r"\d+\.\d+(\.\d+)?",
        wants="a version of Kubernetes",
        example="1.33 or 1.33.2",
        consequence=_NO_CLUSTER,
        source="azure-native 3.29.0, AgentPool.orchestratorVersion",
        texts=_aks(lambda cloud: [("cloud.kubernetesVersion", cloud.kubernetes_version)]),
        cloud=CloudKind.AKS,
    ),
    Syntax(
        what="subscription id",
        whose="Azure",
        pattern=_GUID,
        wants=_GUID_WORDS,
        example=_GUID_EXAMPLE,
        consequence="Every call to the cloud would fail.",
        source="azure-mgmt-containerservice 40.1.0, subscription_id: a UUID",
        texts=_aks(lambda cloud: [("cloud.subscription", cloud.subscription)]),
        cloud=CloudKind.AKS,
    ),
    Syntax(
        what="resource group",
        whose="Azure",
        pattern=r"[-\w.()]{0,89}[-\w()]",
        wants="at most 90 letters, digits, underscores, hyphens, periods and parentheses, not ending with a "
        "period",
        example="train-dev",
        consequence="The resource group could not be created.",
        source=_AZURE_NAMES,
        texts=_aks(lambda cloud: [("cloud.resourceGroup", cloud.resource_group)]),
        cloud=CloudKind.AKS,
    ),
    Syntax(
        what="Entra group",
        whose="Azure",
        pattern=_GUID,
        wants="the group's object id, a GUID",
        example=_GUID_EXAMPLE,
        consequence="The cluster would have no administrators.",
        source="azure-native 3.29.0, ManagedClusterAADProfile.adminGroupObjectIDs",
        texts=_aks(_admins),
        cloud=CloudKind.AKS,
    ),
    Syntax(
        what="subnet",
        whose="AKS",
        pattern=r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network"
        r"/virtualNetworks/[^/]+/subnets/[^/]+",
        wants="the resource id of a subnet",
        example="/subscriptions/S/resourceGroups/R/providers/Microsoft.Network/virtualNetworks/V/subnets/nodes",
        consequence=_NO_CLUSTER,
        source="azure-native 3.29.0, AgentPool.vnetSubnetID",
        texts=_aks(lambda cloud: [("cloud.network.subnet", cloud.network.subnet)]),
        cloud=CloudKind.AKS,
    ),
)

POOL_RULES: tuple[PoolRule, ...] = pool_rules(
    Syntax(
        what="pool name",
        whose="GKE",
        pattern=_RFC1035_40,
        wants=_RFC1035_40_WORDS,
        example="cpu-spot",
        consequence=_NO_POOL,
        source=_GKE_NAMES,
        texts=lambda pool: [(pool.at("name"), pool.pool.name)],
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="service account",
        whose="GKE",
        pattern=r"default|[a-z0-9][-a-z0-9]*@[a-z0-9.-]+\.gserviceaccount\.com",
        wants="its e-mail, or default for that of the project",
        example="nodes@acme-ml.iam.gserviceaccount.com",
        consequence=_NO_POOL,
        source="pulumi-gcp 10.2.0, container.NodePool nodeConfig.serviceAccount",
        texts=lambda pool: [(pool.at("serviceAccount"), pool.pool.service_account)],
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="reservation",
        whose="GKE",
        pattern=rf"(projects/[^/]+/reservations/)?{_RFC1035_63}"
        rf"(/reservationBlocks/{_RFC1035_63}(/reservationSubBlocks/{_RFC1035_63})?)?",
        wants="its name, projects/PROJECT/reservations/NAME for a shared one, or either with "
        "/reservationBlocks/BLOCK for one block",
        example="a100-reservation",
        consequence="No node would ever start.",
        source="GKE docs, consuming-reservations (cloud.google.com, 2026); cluster-toolkit "
        "gke-node-pool/main.tf@01a7a3ed; AI-Hypercomputer/xpk, parse_reservation (2026): blocks",
        texts=_reservation,
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="network tag",
        whose="Compute Engine",
        pattern=_NETWORK_TAG,
        wants=_NETWORK_TAG_WORDS,
        example="allow-ssh",
        consequence=_NO_POOL,
        source=_NETWORK_TAG_SOURCE,
        texts=lambda pool: [
            (pool.at(f"networkTags[{index}]"), tag) for index, tag in enumerate(pool.pool.network_tags)
        ],
        cloud=CloudKind.GKE,
    ),
    Syntax(
        what="pool name",
        whose="AKS",
        pattern=r"[a-z][a-z0-9]{0,11}",
        wants="at most 12 lower-case letters and digits, starting with a letter",
        example="cpuspot",
        consequence=_NO_POOL,
        source="azure-aks-docs use-system-pools.md (2026-04-30)",
        texts=lambda pool: [(pool.at("name"), pool.pool.name)],
        cloud=CloudKind.AKS,
    ),
    Syntax(
        what="capacity reservation group",
        whose="AKS",
        pattern=r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute"
        r"/capacityReservationGroups/[^/]+",
        wants="its resource id",
        example="/subscriptions/S/resourceGroups/R/providers/Microsoft.Compute/capacityReservationGroups/G",
        consequence=_NO_POOL,
        source="azure-native 3.29.0, AgentPool.capacityReservationGroupID",
        texts=_reservation,
        cloud=CloudKind.AKS,
    ),
)

RULES: tuple[ClusterRule | PoolRule, ...] = (*CLUSTER_RULES, *POOL_RULES)


@cluster_rule(
    "cluster name without reserved word",
    "Azure docs, error-reserved-resource-name (learn.microsoft.com/azure/azure-resource-manager/"
    "troubleshooting, 2023-04-05)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _reserved_word(cluster: Cluster) -> Iterator[Fault]:
    word = re.search(AZURE_RESERVED, cluster.name)
    if word is not None and cluster.cloud.existing is None:
        yield Fault(
            "name",
            f"{word[0]} is a reserved word of Azure.",
            "Azure refuses such words in names of resources with a host name, and may refuse the cluster.",
            "Write another name.",
        )
