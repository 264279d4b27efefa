"""Container registries and buckets of teams: their names and addresses."""

from typing import Final, assert_never

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.physical_names import BUCKET, REPOSITORY, account_name, fitting
from ebbtide.declaration.model.tenancy import Team

CLAIM: Final = "shared"
"""The claim of a team's shared volume."""

CONTAINER: Final = "shared"
"""The container of a storage account, which is a team's bucket on AKS."""

ACCOUNT: Final = "worker"
"""The service account that a team's workloads run as, in its namespace."""

BUCKET_DRIVERS: Final = {CloudKind.GKE: "gcsfuse.csi.storage.gke.io", CloudKind.AKS: "blob.csi.azure.com"}
"""CSI drivers that mount buckets in pods (GKE docs, cloud-storage-fuse-csi-driver; azure-aks-docs,
azure-blob-csi, 2026)."""


def bucket_name(cluster: Cluster, team: Team) -> str:
    """Return the name of a team's bucket; on AKS, of the storage account with the container.

    Names of buckets are global, so the project's name is included.
    """
    match cluster.cloud:
        case Gke() as cloud:
            return fitting(f"{cloud.project}-{cluster.name}-{team.stored_as}", BUCKET)
        case Aks() as cloud:
            return account_name(cloud.subscription, cluster.name, team.stored_as)
        case _:
            assert_never(cluster.cloud)


def bucket_address(cluster: Cluster, team: Team) -> str:
    """Return the address of a team's bucket; empty if it has none."""
    if not team.has_bucket:
        return ""
    name = bucket_name(cluster, team)
    match cluster.cloud:
        case Gke():
            return f"gs://{name}"
        case Aks():
            return f"abfss://{CONTAINER}@{name}.dfs.core.windows.net"
        case _:
            assert_never(cluster.cloud)


def mounts_buckets(cluster: Cluster) -> bool:
    """Return whether a team's shared volume is its bucket."""
    return any(team.volume is not None and team.volume.kind == "bucket" for team in cluster.teams)


def bucket_driver(cluster: Cluster) -> str:
    """Return the CSI driver that mounts buckets; empty if the cluster may not have it.

    A GKE cluster of the stack always has it, any other cluster if a team mounts its bucket.
    """
    has_driver = mounts_buckets(cluster) or (
        cluster.site.cloud is CloudKind.GKE and cluster.cloud.existing is None
    )
    return BUCKET_DRIVERS[cluster.site.cloud] if has_driver else ""


def registry_name(cluster: Cluster, team: Team) -> str:
    """Return the name of a team's registry.

    GKE: a repository of Artifact Registry, unique in its project and location: 1 to 63 lower-case letters,
    digits and hyphens (Artifact Registry docs, repositories/create-repos, 2026). AKS: a container registry,
    unique in all of Azure: 5 to 50 letters and digits (azure-resource-manager docs, resource-name-rules,
    2026).
    """
    match cluster.cloud:
        case Gke():
            return fitting(f"{cluster.name}-{team.stored_as}", REPOSITORY)
        case Aks() as cloud:
            return account_name(cloud.subscription, cluster.name, f"{team.stored_as}-images")
        case _:
            assert_never(cluster.cloud)


def image_prefix(cluster: Cluster, team: Team) -> str:
    """Return the prefix of a team's image names, without a trailing slash.

    A domain-scoped project, `acme.example:ml`, is written with a slash (Artifact Registry docs, docker/names,
    2026).
    """
    name = registry_name(cluster, team)
    match cluster.cloud:
        case Gke() as cloud:
            project = cloud.project.replace(":", "/")
            return f"{cluster.site.region}-docker.pkg.dev/{project}/{name}"
        case Aks():
            return f"{name}.azurecr.io"
        case _:
            assert_never(cluster.cloud)


def keeps_registry(cluster: Cluster, team: Team) -> bool:
    """Return whether a team's registry remains when the stack is destroyed."""
    declared = team.registry.keep if team.registry else None
    return not cluster.is_ephemeral if declared is None else declared
