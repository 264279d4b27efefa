"""Container registries of teams: their names and image prefixes."""

from typing import assert_never

from ebbtide.model.cloud import Aks, Gke
from ebbtide.model.cluster import Cluster
from ebbtide.model.physical_names import REPOSITORY, account_name, fitting
from ebbtide.model.tenancy import Team


def registry_name(cluster: Cluster, team: Team) -> str:
    """Return the name of a team's registry.

    GKE: a repository of Artifact Registry, unique in its project and location: 1 to 63 lower-case letters,
    digits and hyphens (Artifact Registry docs, repositories/create-repos, 2026). AKS: a container registry,
    unique in all of Azure: 5 to 50 letters and digits (azure-resource-manager docs, resource-name-rules,
    2026).
    """
    match cluster.cloud:
        case Gke():
            return fitting(f"{cluster.name}-{team.name}", REPOSITORY)
        case Aks() as cloud:
            return account_name(cloud.subscription, cluster.name, f"{team.name}-images")
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
