"""Clouds: syntax of their locations and accounts, and their defaults, limits and keys."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ebbtide.values.cloud_kind import CloudKind, by_cloud

_ZONE = re.compile(r"^(?P<region>[a-z]+-[a-z]+[0-9]+)-(?:ai[0-9]+)?[a-z]$")
"""A zone, or an AI zone such as `us-central1-ai1a`, in which GKE also creates nodes (Compute docs, ai-zones,
2026)."""

_DISPLAYED = re.compile(r"[A-Za-z]+( ?[A-Za-z0-9]+)*")

GKE_REGION_ZONES = 3
"""Default number of zones with nodes of a regional cluster (GKE docs, regional-clusters, 2026)."""

PREEMPTIBLE_SECONDS = 24 * 3600
"""Maximum lifetime of a preemptible VM, 24 hours (Compute Engine docs, preemptible)."""
COMPUTE_CLASS: Final = "cloud.google.com/compute-class"
"""Key of the label and taint of a ComputeClass' nodes (GKE docs, about-custom-compute-classes, 2026)."""
FALLBACK: Final = "ebbtide.dev/fallback"
"""Key of the label and taint of a fallback queue's nodes on AKS, which has no key for it."""
POOL_LABEL: Final = "ebbtide.dev/pool"
"""Key of the label and taint that identify a pool on any cloud."""
SMT_DISABLED: Final = "cloud.google.com/gke-smt-disabled"
"""Label by which Google's DaemonSet switches simultaneous multithreading off on a node (GKE docs,
sandbox-pods, 2026)."""


def region_of(location: str) -> str:
    """Return the region of a GKE zone (`us-central1-a`), or any other location unchanged."""
    zone = _ZONE.match(location)
    return zone["region"] if zone else location


def is_gke_zone(location: str) -> bool:
    """Return whether a GKE location is a zone (`us-central1-a`) and not a region (`us-central1`)."""
    return _ZONE.match(location) is not None


def azure_region(text: str) -> str:
    """Return the name of an Azure region that is written as Azure displays it: `East US` and `EastUS` are
    `eastus` (azure-cli, `az account list-locations`: `displayName` and `name`, 2026). Other texts are
    unchanged."""
    return text.replace(" ", "").lower() if _DISPLAYED.fullmatch(text) else text


def account_host(project: str) -> str:
    """Return the host name of the service accounts of a Google Cloud project.

    For a project of a domain, `acme.example:ml`, it is reversed: `ml.acme.example` (addresses of
    google.com:skia-buildbots, in google/skia-buildbot, 2026).
    """
    domain, _, name = project.rpartition(":")
    return f"{name}.{domain}.iam.gserviceaccount.com" if domain else f"{name}.iam.gserviceaccount.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSpec:
    """Defaults, limits and keys of a cloud.

    Attributes:
        provider_module: Python package of the Pulumi provider.
        account: kind of the billed account, as named in the declaration.
        account_config: key of the account in the provider's configuration.
        quota_page: page for quota requests, with `{account}`.
        fallback_key: label key that selects all pools of a fallback queue; its value is the queue's name.
        allowed_labels: label keys under a reserved prefix that a pool may declare.
        allowed_taints: taint keys under a reserved prefix that a pool may declare: those that placement
            derives, with another value or effect, and those that the cloud leaves to the user.
        images: node images, the default first.
        boot_disk_gib: minimum and maximum size of a boot disk, GiB.
        pods_per_node: minimum and maximum of the pod limit of a node.
        system_disk_gib: default boot disk of a system node, GiB.
        system_nodes: recommended minimum node count of a system pool, and its default.
        system_vcpus: recommended minimum vCPUs of a system node.
        system_families_excluded: machine families that the cloud's documentation excludes for a system pool.
        authorized_networks: maximum number of ranges that can reach the control plane.
        shared_volume: kind of a team's shared file system.
        machine_example: a machine type, for messages.
        machine_similarity: minimum similarity of a suggested machine type, from 0 to 1.
    """

    provider_module: str
    account: str
    account_config: str
    quota_page: str
    fallback_key: str
    allowed_labels: frozenset[str]
    allowed_taints: frozenset[str]
    images: tuple[str, ...]
    boot_disk_gib: tuple[int, int]
    pods_per_node: tuple[int, int]
    system_disk_gib: int
    system_nodes: int
    system_vcpus: int
    system_families_excluded: tuple[str, ...]
    authorized_networks: int
    shared_volume: str
    machine_example: str
    machine_similarity: float


CLOUD_SPECS: Final[Mapping[CloudKind, CloudSpec]] = by_cloud(
    # GKE docs: authorized-networks, spot-vms, about-custom-compute-classes, flexible-pod-cidr (2026).
    gke=CloudSpec(
        provider_module="pulumi_gcp",
        account="project",
        account_config="gcp:project",
        quota_page="https://console.cloud.google.com/iam-admin/quotas?project={account}",
        fallback_key=COMPUTE_CLASS,
        # GKE docs, sandbox-pods, allocate-network-resources-dra and tpu-multislice; cluster-toolkit,
        # gke-node-pool; GoogleCloudPlatform/k8s-node-tools, kdump; GoogleCloudPlatform/cluster-autoscaler@
        # 7d250507, labels/system_labels.go; Kubernetes docs, labels-annotations-taints (2026).
        allowed_labels=frozenset(
            {
                COMPUTE_CLASS,
                SMT_DISABLED,
                "cloud.google.com/gke-kdump-enabled",
                "cloud.google.com/gke-max-pods-constraint-off",  # Users report it; no document names it.
                "cloud.google.com/gke-networking-dra-driver",
                "cloud.google.com/gke-nodepool-group-name",
                "cloud.google.com/gke-nvidia-gpu-dra-driver",
                "cloud.google.com/gke-queued",
                "cloud.google.com/gke-tpu-dra-driver",
                "cloud.google.com/gke-workload-type",
                "node.kubernetes.io/exclude-from-external-load-balancers",
            }
        ),
        allowed_taints=frozenset(
            {
                COMPUTE_CLASS,
                "cloud.google.com/gke-flex-start",
                "cloud.google.com/gke-preemptible",
                "cloud.google.com/gke-spot",
                POOL_LABEL,
            }
        ),
        images=("cos", "ubuntu"),
        boot_disk_gib=(10, 65536),
        pods_per_node=(8, 256),
        system_disk_gib=30,
        system_nodes=1,
        system_vcpus=1,
        system_families_excluded=(),
        authorized_networks=100,
        shared_volume="filestore",
        machine_example="n2-standard-8",
        machine_similarity=0.7,
    ),
    # azure-aks-docs: use-system-pools, spot-node-pool, api-server-authorized-ip-ranges (2026).
    aks=CloudSpec(
        provider_module="pulumi_azure_native",
        account="subscription",
        account_config="azure-native:subscriptionId",
        quota_page="https://portal.azure.com/#view/Microsoft_Azure_Capacity/QuotaMenuBlade/~/myQuotas",
        fallback_key=FALLBACK,
        allowed_labels=frozenset({FALLBACK, "node.kubernetes.io/exclude-from-external-load-balancers"}),
        allowed_taints=frozenset({"kubernetes.azure.com/scalesetpriority", POOL_LABEL}),
        images=("ubuntu", "azure-linux"),
        boot_disk_gib=(30, 2048),
        pods_per_node=(10, 250),
        system_disk_gib=64,
        system_nodes=2,
        system_vcpus=4,
        system_families_excluded=("BS",),
        authorized_networks=200,
        shared_volume="azure-files",
        machine_example="Standard_D8s_v5",
        machine_similarity=0.85,  # All names have a common prefix.
    ),
)
